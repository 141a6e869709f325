"""Failing: what has happened cannot be mended by another start, the query ends with its exception."""

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
from spark_elastic.core.query.transitions import FAILING

_OVER = "the query is about to end"


@define(kw_only=True)
class Failing(State):
    """A query that is ending: `message` says why where its run has no exception of its own."""

    name: ClassVar[str] = FAILING
    handles: ClassVar[frozenset[type[Event]]] = frozenset({CancelRequested, QueryStarted, QueryTerminated})
    ignores: ClassVar[Mapping[type[Event], str]] = {
        QueryFailed: _OVER,
        QuerySubmitted: _OVER,
        QueryProgress: _OVER,
        QueryIdle: _OVER,
        QueryStopped: _OVER,
        ActionDone: "the query is over when it says so",
        ActionFailed: "what cannot be ended says what becomes of it",
    }

    message: str | None = None

    def enter(self, context: Context) -> None:
        """Order the end."""
        context.end_failed(self.message)

    def resources_changed(self, context: Context) -> None:
        """Leave it out."""

    def on(self, event: Event, context: Context) -> None:
        """Wait for the end."""
        match event:
            case CancelRequested():
                context.cancel(event.by)
            case QueryStarted():
                # The shim had no answer in time and let it run as plain Spark: it is ended all the same.
                context.started(event)
                context.cancel("spark-elastic")
            case QueryTerminated():
                context.finish(event)
