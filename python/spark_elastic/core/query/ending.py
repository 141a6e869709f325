"""What the states of a query have in common whose end is ordered."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from attrs import define

from spark_elastic.core import events as ev
from spark_elastic.core.query import internal_events as inner
from spark_elastic.core.query.state import Reactions, State

if TYPE_CHECKING:
    from spark_elastic.core.query.step import Step


_ABOUT_TO_END = "the query is about to end"


@define(kw_only=True)
class Ending(State):
    """A query that is to end."""

    ending: ClassVar[bool] = True

    def order_the_end_again(self, event: inner.Recovered, step: Step) -> None:
        """Order the end again."""
        self.enter(step)

    reactions: ClassVar[Reactions] = {
        **State.reactions,
        ev.QuerySubmitted: _ABOUT_TO_END,
        ev.QueryFailed: _ABOUT_TO_END,
        ev.QueryProgress: _ABOUT_TO_END,
        ev.ActionDone: "the query is over when it says so",
        ev.ActionFailed: "what cannot be ended now says what becomes of it",
        inner.Recovered: order_the_end_again,
        inner.SlotsChanged: _ABOUT_TO_END,
        inner.BoundsChanged: _ABOUT_TO_END,
    }
