"""Finished: the handle of the query has ended for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from attrs import define

from spark_elastic.core import events as ev
from spark_elastic.core.query.state import Reactions, State
from spark_elastic.core.query.transitions import FINISHED

if TYPE_CHECKING:
    from spark_elastic.core.query.record import QueryRecord
    from spark_elastic.core.query.step import Step


_LATE = "it was under way when the query ended"


@define(kw_only=True)
class Finished(State):
    """A query that is kept to be looked at."""

    name: ClassVar[str] = FINISHED
    final: ClassVar[bool] = True

    def enter(self, step: Step) -> None:
        """Rest."""

    def validate(self, record: QueryRecord) -> None:
        """Check that nothing is waited for. Raises AssertionError."""
        assert not record.orders
        assert record.history.open_record is None

    reactions: ClassVar[Reactions] = {
        **State.reactions,
        ev.QueryStarted: _LATE,
        ev.QueryProgress: _LATE,
        ev.QueryFailed: _LATE,
        ev.CancelRequested: "it is over already",
        ev.QueryTerminated: "it says what is known",
        ev.ActionDone: _LATE,
        ev.ActionFailed: _LATE,
    }
