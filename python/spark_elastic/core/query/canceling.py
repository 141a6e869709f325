"""Canceling: somebody other than the application has asked for the end of the query."""

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
    QuerySubmitted,
    QueryTerminated,
)
from spark_elastic.core.query.context import Context
from spark_elastic.core.query.state import State
from spark_elastic.core.query.transitions import CANCELING

_OVER = "the query is about to end"


@define(kw_only=True)
class Canceling(State):
    """A query that is stopping for good."""

    name: ClassVar[str] = CANCELING
    handles: ClassVar[frozenset[type[Event]]] = frozenset({QueryTerminated})
    ignores: ClassVar[Mapping[type[Event], str]] = {
        CancelRequested: "it was asked for already",
        QuerySubmitted: _OVER,
        QueryStarted: _OVER,
        QueryFailed: _OVER,
        QueryProgress: _OVER,
        QueryIdle: _OVER,
        QueryStopped: _OVER,
        ActionDone: "the query is over when it says so",
        ActionFailed: "a query that takes its time to stop says so when it has",
    }

    def enter(self, context: Context) -> None:
        """Order the stop."""
        context.stop_for_good()

    def resources_changed(self, context: Context) -> None:
        """Leave it out."""

    def on(self, event: Event, context: Context) -> None:
        """Wait for the end."""
        match event:
            case QueryTerminated():
                context.finish(event)
