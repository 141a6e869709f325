"""What the loop needs from the driver, independent of the implementation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from attrs import frozen

JsonObject = Mapping[str, Any]
# HTTP requests that change nothing, those that may, and questions about batch stages have a queue each.
QueueName = Literal["reads", "writes", "stages"]

# Increased whenever a field of the contract changes its meaning; both sides refuse another number.
CONTRACT = 1
# The longest time, in ms, that one exchange may wait for events.
MAX_WAIT_MS = 1_000


class GatewayError(Exception):
    """Communication with the driver failed; the text is one line for the driver's log."""


class Lost(GatewayError):
    """The connection could not be made, has ended, or delivers something that makes no sense."""


class Unanswered(GatewayError):
    """One call could not be made, or failed in the driver; the connection still works."""


class Mismatch(GatewayError):
    """The other end is not the driver that started this process, or has another version."""


@frozen(kw_only=True)
class Exchange:
    """The result of one exchange.

    `merged` and `dropped` count, since the driver's start, events that were merged into others or dropped
    because they were not fetched in time. With `stop` the application ends: these events are the last ones.
    """

    events: tuple[JsonObject, ...] = ()
    merged: int = 0
    dropped: int = 0
    stop: bool = False


@frozen(kw_only=True)
class Served:
    """The result of waiting for a request: a request, none, or the end of the application."""

    request: JsonObject | None = None
    stop: bool = False


class Gateway(Protocol):
    """The driver, as the loop sees it."""

    def exchange(self, actions: Sequence[JsonObject], wait_ms: int) -> Exchange:
        """Send `actions` in their order, then wait up to `wait_ms` (0 to 1000) for events.

        The first exchange of a connection returns a snapshot first. Raises GatewayError.
        """


class RequestGateway(Protocol):
    """The driver, as the threads that answer requests see it."""

    def serve(
        self,
        answer: JsonObject | None,
        *,
        queue: QueueName,
        wait_ms: int,
        metrics: Mapping[str, float] | None = None,
    ) -> Served:
        """Send an answer, then wait up to `wait_ms` (0 to 1000) for the next request of a queue.

        `metrics` are the new values in Spark's metrics system; None keeps the present ones. Raises
        GatewayError; Unanswered if the next call may succeed, without this answer or these metrics.
        """

    def wake(self) -> None:
        """Make the loop's exchange return now. Raises GatewayError."""
