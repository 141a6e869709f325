"""Failing: what has happened cannot be mended by another start, the query ends with its exception."""

from __future__ import annotations

from typing import ClassVar

from attrs import define

from spark_elastic.core.events import CancelRequested, Event, QueryStarted, QueryTerminated
from spark_elastic.core.query.context import Context
from spark_elastic.core.query.ending import Ending
from spark_elastic.core.query.transitions import FAILING


@define(kw_only=True)
class Failing(Ending):
    """A query that is ending: `message` says why where its run has no exception of its own."""

    name: ClassVar[str] = FAILING
    handles: ClassVar[frozenset[type[Event]]] = frozenset({CancelRequested, QueryStarted, QueryTerminated})

    message: str | None = None

    def enter(self, context: Context) -> None:
        """Order the end."""
        context.end_failed(self.message)

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
