"""The orders to keep a text beside the checkpoints of queries, until their outcomes come back."""

from __future__ import annotations

from typing import Literal

from attrs import define, field

from spark_elastic.core import events as ev
from spark_elastic.core.actions import KeepText
from spark_elastic.core.turn import Turn


@define
class KeepOrders:
    """The orders of one owner, with the query that each is about."""

    _queries: dict[str, str] = field(factory=dict)

    def give(self, query: str, name: Literal["bounds", "batches"], text: str | None, turn: Turn) -> None:
        """Order that a text outlives the driver, None: that none does."""
        order = KeepText(id=turn.next_action(), cause=turn.cause, query=query, name=name, text=text)
        self._queries[order.id] = query
        turn.emit(order)

    def answered(self, event: ev.ActionOutcome) -> str | None:
        """Take in an outcome; return the query that it is about, None if it is not that of one of these."""
        return self._queries.pop(event.action, None)

    def lost(self) -> None:
        """Take in that outcomes may have been lost."""
        self._queries.clear()
