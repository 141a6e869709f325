"""One event's turn: what surrounds the queries and the executors while it is handled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from attrs import frozen

from spark_elastic.core.actions import Action, Decision
from spark_elastic.core.settings import CoreSettings

Number = float | int | str


@frozen
class Timer:
    """A timer that is set, for `at` (epoch ms)."""

    id: str
    at: int


class Turn(Protocol):
    """The event at hand, and the way out for actions."""

    @property
    def now(self) -> int:
        """The time of the event, epoch ms."""
        ...

    @property
    def cause(self) -> str:
        """The id of the event."""
        ...

    @property
    def settings(self) -> CoreSettings:
        """What the user decided."""
        ...

    @property
    def slots(self) -> int:
        """The slots of now."""
        ...

    @property
    def slots_before(self) -> int:
        """The slots before the event."""
        ...

    def next_action(self) -> str:
        """Give the id for an action."""
        ...

    def next_timer(self) -> str:
        """Give the id for a timer."""
        ...

    def emit(self, action: Action) -> None:
        """Send an action out; the outcome of an order about a query comes back to that query."""
        ...

    def give_up(self, order: str) -> None:
        """Wait no more for the outcome of an order about a query."""
        ...

    def publish(
        self,
        reason: str,
        message: str,
        *,
        query: str | None,
        before: int | None,
        after: int | None,
        numbers: Mapping[str, Number],
        alternatives: tuple[str, ...] = (),
        until: int | None = None,
    ) -> Decision:
        """Publish a decision in these words, `query` None for one about the application; return it."""
        ...

    def report(
        self,
        reason: str,
        *,
        query: str | None = None,
        before: int | None = None,
        after: int | None = None,
        **numbers: Number,
    ) -> None:
        """Publish a decision in the words of its reason."""
        ...
