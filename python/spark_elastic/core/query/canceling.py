"""Canceling: somebody other than the application has asked for the end of the query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from attrs import define

from spark_elastic.core.events import CancelRequested, Event, QueryStarted, QueryTerminated
from spark_elastic.core.query.context import Context
from spark_elastic.core.query.ending import ABOUT_TO_END, Ending
from spark_elastic.core.query.transitions import CANCELING


@define(kw_only=True)
class Canceling(Ending):
    """A query that is stopping for good."""

    name: ClassVar[str] = CANCELING
    handles: ClassVar[frozenset[type[Event]]] = frozenset({QueryTerminated})
    ignores: ClassVar[Mapping[type[Event], str]] = {
        **ABOUT_TO_END,
        QueryStarted: "it is stopped all the same",
        CancelRequested: "it was asked for already",
    }

    def enter(self, context: Context) -> None:
        """Order the stop."""
        context.stop_for_good()

    def on(self, event: Event, context: Context) -> None:
        """Wait for the end."""
        match event:
            case QueryTerminated():
                context.finish(event)
