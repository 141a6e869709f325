"""Messages through a pair of pipes, each within a time limit: a length, then so many bytes."""

from __future__ import annotations

import json
import os
import select
import struct
import time
from collections.abc import Mapping

from attrs import frozen

from spark_elastic.core.policies.policy import PolicyAnswered
from spark_elastic.wire import WireError, decode_event, encode_event

_LENGTH = struct.Struct(">I")
_LONGEST = 64 << 20
_AT_ONCE = 1 << 16


class PipeClosed(Exception):
    """Nobody is at the other end any more."""


class OutOfTime(Exception):
    """The other end has not come to it in time."""


class Pipe:
    """One end: what is read from file descriptor `reads`, and written to `writes`; neither may block."""

    def __init__(self, reads: int, writes: int) -> None:
        self._reads, self._writes = reads, writes
        for end in (reads, writes):
            os.set_blocking(end, False)

    def send(self, message: bytes, deadline: float | None = None) -> None:
        """Write a message by the `deadline` (seconds of the monotonic clock, None: there is none).

        Raises PipeClosed or OutOfTime.
        """
        rest = memoryview(_LENGTH.pack(len(message)) + message)
        while rest:
            _wait(self._writes, select.POLLOUT, deadline)
            try:
                rest = rest[os.write(self._writes, rest[:_AT_ONCE]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise PipeClosed from error

    def receive(self, deadline: float | None = None) -> bytes:
        """Read a message by the `deadline`. Raises OutOfTime, or PipeClosed: also for one too long."""
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size, deadline))
        if length > _LONGEST:
            raise PipeClosed
        return self._read(length, deadline)

    def _read(self, length: int, deadline: float | None) -> bytes:
        read = bytearray()
        while len(read) < length:
            _wait(self._reads, select.POLLIN, deadline)
            try:
                part = os.read(self._reads, min(_AT_ONCE, length - len(read)))
            except BlockingIOError:
                continue
            except OSError as error:
                raise PipeClosed from error
            if not part:
                raise PipeClosed
            read += part
        return bytes(read)


def _wait(end: int, kind: int, deadline: float | None) -> None:
    poll = select.poll()
    poll.register(end, kind)
    left_ms = None if deadline is None else max(0.0, (deadline - time.monotonic()) * 1_000)
    if not poll.poll(left_ms):
        raise OutOfTime


# What the policy process and the process of a custom policy say to each other, and how long that may take.
# The parent pickles what it says: a `Begin`, then views. What it is told is JSON, since the code of others
# could have written it.


@frozen(kw_only=True)
class Limits:
    """How long something may take, in seconds.

    `answer_s`: an answer. `begin_s`: until a policy is imported and made. `alive_s`: either of these, where
    nobody is left to end the process: then the kernel does.
    """

    answer_s: float = 5.0
    begin_s: float = 30.0
    alive_s: float = 60.0


LIMITS = Limits()


@frozen(kw_only=True)
class Begin:
    """The first message: which policy it is to be, its options, and how long its code may run at a time."""

    policy: str
    options: Mapping[str, str]
    alive_s: float


class Nonsense(ValueError):
    """A message of the other process cannot be read."""


def encode_begun(error: str | None) -> bytes:
    """Say that the policy is there, or why it is not."""
    return json.dumps({"error": error}).encode()


def decode_begun(message: bytes) -> str | None:
    """Return why the policy is not there, None: it is. Raises Nonsense."""
    try:
        error = json.loads(message)["error"]
    except (ValueError, TypeError, KeyError) as wrong:
        raise Nonsense from wrong
    if not (error is None or isinstance(error, str)):
        raise Nonsense
    return error


def encode(answer: PolicyAnswered) -> bytes:
    """Write an answer."""
    return json.dumps(encode_event(answer)).encode()


def decode(message: bytes) -> PolicyAnswered:
    """Read an answer. Raises Nonsense."""
    try:
        answer = decode_event(json.loads(message))
    except (WireError, ValueError, AttributeError) as wrong:
        raise Nonsense from wrong
    if not isinstance(answer, PolicyAnswered):
        raise Nonsense
    return answer
