"""What the states of a query have in common whose end is ordered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from attrs import define

from spark_elastic.core.events import (
    ActionDone,
    ActionFailed,
    Event,
    QueryFailed,
    QueryIdle,
    QueryInfo,
    QueryProgress,
    QueryStopped,
    QuerySubmitted,
    SavepointTaken,
)
from spark_elastic.core.query.context import Context
from spark_elastic.core.query.state import State

ABOUT_TO_END: Mapping[type[Event], str] = {
    **dict.fromkeys(
        (QuerySubmitted, QueryFailed, QueryProgress, QueryIdle, QueryStopped),
        "the query is about to end",
    ),
    SavepointTaken: "it is kept with the query",
    ActionDone: "the query is over when it says so",
    ActionFailed: "what cannot be ended now says what becomes of it",
}


@define(kw_only=True)
class Ending(State):
    """A query that is to end."""

    ignores: ClassVar[Mapping[type[Event], str]] = ABOUT_TO_END

    def found_again(self, info: QueryInfo, context: Context) -> None:
        """Order the end again."""
        self.enter(context)

    def resources_changed(self, context: Context) -> None:
        """Leave it out."""
