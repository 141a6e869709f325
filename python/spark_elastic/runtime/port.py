"""What the loop needs of the driver, whatever is behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from attrs import frozen

JsonObject = Mapping[str, Any]
# HTTP requests that change nothing, those that may, and questions about batch stages wait in a queue each.
QueueName = Literal["reads", "writes", "stages"]

# Raised by one whenever a field of the contract changes its meaning; both sides refuse another number.
CONTRACT = 1
# The longest that one exchange may wait for events.
MAX_WAIT_MS = 1_000


class GatewayError(Exception):
    """The driver cannot be talked to; the text is one line for the driver's log."""


class Lost(GatewayError):
    """The connection does not come about, has ended, or what comes through it makes no sense."""


class Unanswered(GatewayError):
    """One call could not be made, or has failed in the driver; the connection is as good as before."""


class Mismatch(GatewayError):
    """The other end is not the one that started us, or not of our version."""


@frozen(kw_only=True)
class Exchange:
    """What one exchange brought.

    `merged` and `dropped` count, since the driver's start, events that were folded into others or given up
    because nobody took them in time. With `stop` the application ends: these events are the last ones.
    """

    events: tuple[JsonObject, ...] = ()
    merged: int = 0
    dropped: int = 0
    stop: bool = False


@frozen(kw_only=True)
class Served:
    """What waiting for a request brought: one, none, or that the application ends."""

    request: JsonObject | None = None
    stop: bool = False


class Gateway(Protocol):
    """The driver, as the loop sees it."""

    def exchange(self, actions: Sequence[JsonObject], wait_ms: int) -> Exchange:
        """Hand over `actions` in their order, then wait up to `wait_ms` (0 to 1000) for events.

        The first exchange of a connection brings a snapshot first. Raises GatewayError.
        """


class RequestGateway(Protocol):
    """The driver, as those see it who answer requests."""

    def serve(
        self,
        answer: JsonObject | None,
        *,
        queue: QueueName,
        wait_ms: int,
        metrics: Mapping[str, float] | None = None,
    ) -> Served:
        """Hand over an answer, wait up to `wait_ms` (0 to 1000) for the next request of a queue.

        `metrics` are what Spark's metrics system shows from now on, None: what it shows. Raises GatewayError;
        Unanswered if the next call may go better, without this answer or these metrics.
        """

    def wake(self) -> None:
        """Let the loop's exchange come back now. Raises GatewayError."""
