"""Messages through a pair of pipes, each within a time limit: a length, then that number of bytes."""

from __future__ import annotations

import os
import select
import struct
import time

_LENGTH = struct.Struct(">I")
_LONGEST = 64 << 20
_AT_ONCE = 1 << 16


class PipeClosed(Exception):
    """The other end is closed."""


class OutOfTime(Exception):
    """The other end did not read or write in time."""


class Pipe:
    """One end: reads from file descriptor `reads`, writes to `writes`, and makes both non-blocking."""

    def __init__(self, reads: int, writes: int) -> None:
        self._reads, self._writes = reads, writes
        for end in (reads, writes):
            os.set_blocking(end, False)

    def send(self, message: bytes, deadline: float | None = None) -> None:
        """Write a message by the `deadline` (seconds of the monotonic clock, None for no limit).

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
        """Read a message by the `deadline`. Raises OutOfTime, or PipeClosed, also for one too long."""
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
