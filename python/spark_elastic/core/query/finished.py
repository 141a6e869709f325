"""Finished: the handle of the query has ended for good."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from attrs import define

from spark_elastic.core.events import (
    ActionDone,
    ActionFailed,
    CancelRequested,
    Event,
    QueryFailed,
    QueryIdle,
    QueryProgress,
    QueryStarted,
    QueryStopped,
    QueryTerminated,
    SavepointTaken,
)
from spark_elastic.core.query.context import Context
from spark_elastic.core.query.state import State
from spark_elastic.core.query.transitions import FINISHED

_LATE = "it was under way when the query ended"


@define(kw_only=True)
class Finished(State):
    """A query that is kept to be looked at."""

    name: ClassVar[str] = FINISHED
    handles: ClassVar[frozenset[type[Event]]] = frozenset()
    ignores: ClassVar[Mapping[type[Event], str]] = {
        SavepointTaken: "it is kept with the query",
        QueryStarted: _LATE,
        QueryProgress: _LATE,
        QueryIdle: _LATE,
        QueryStopped: _LATE,
        QueryFailed: _LATE,
        CancelRequested: "it is over already",
        QueryTerminated: "it says what is known",
        ActionDone: _LATE,
        ActionFailed: _LATE,
    }

    def enter(self, context: Context) -> None:
        """Rest."""

    def resources_changed(self, context: Context) -> None:
        """Leave it out."""

    def on(self, event: Event, context: Context) -> None:
        """React to nothing."""
