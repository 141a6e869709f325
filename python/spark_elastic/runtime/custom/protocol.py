"""What the policy process and the process of a custom policy say to each other, and how long that may take.

The parent pickles what it says: a `Begin`, then views. What it is told is JSON, since the code of others
could have written it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from attrs import frozen

from spark_elastic.core.policies.policy import PolicyAnswered
from spark_elastic.wire import WireError, decode_event, encode_event


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
