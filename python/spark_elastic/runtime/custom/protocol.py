"""The messages between the policy process and the process of a custom policy, and their time limits.

The parent pickles its messages: a `Begin`, then views. The replies are JSON, since the policy's code could
have written them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from attrs import frozen

from spark_elastic.core.policies.policy import PolicyAnswered
from spark_elastic.wire import WireError, decode_event, encode_event


@frozen(kw_only=True)
class Limits:
    """Time limits, in seconds.

    `answer_s` is for an answer, `begin_s` for importing and creating a policy. `alive_s` is for either of
    these if the parent is gone: then the kernel ends the process.
    """

    answer_s: float = 5.0
    begin_s: float = 30.0
    alive_s: float = 60.0


LIMITS = Limits()


@frozen(kw_only=True)
class Begin:
    """The first message: the policy's name, its options, and the seconds its code may run at a time."""

    policy: str
    options: Mapping[str, str]
    alive_s: float


class Nonsense(ValueError):
    """A message of the other process cannot be read."""


def encode_begun(error: str | None) -> bytes:
    """Encode that the policy was created, or why it was not."""
    return json.dumps({"error": error}).encode()


def decode_begun(message: bytes) -> str | None:
    """Return why the policy was not created, or None if it was. Raises Nonsense."""
    try:
        error = json.loads(message)["error"]
    except (ValueError, TypeError, KeyError) as wrong:
        raise Nonsense from wrong
    if not (error is None or isinstance(error, str)):
        raise Nonsense
    return error


def encode(answer: PolicyAnswered) -> bytes:
    """Encode an answer."""
    return json.dumps(encode_event(answer)).encode()


def decode(message: bytes) -> PolicyAnswered:
    """Decode an answer. Raises Nonsense."""
    try:
        answer = decode_event(json.loads(message))
    except (WireError, ValueError, AttributeError) as wrong:
        raise Nonsense from wrong
    if not isinstance(answer, PolicyAnswered):
        raise Nonsense
    return answer
