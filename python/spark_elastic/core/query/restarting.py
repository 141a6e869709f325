"""Restarting: the query is to stop at its next micro-batch boundary, to start again with another count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from attrs import define

from spark_elastic.core.events import (
    ActionDone,
    ActionFailed,
    Event,
    QueryIdle,
    QueryProgress,
    QueryStarted,
    QueryStopped,
    QuerySubmitted,
    QueryTerminated,
)
from spark_elastic.core.query.context import Context
from spark_elastic.core.query.state import State
from spark_elastic.core.query.transitions import RESTARTING


@define(kw_only=True)
class Restarting(State):
    """A query that is stopping. `target` is the count that the restart is for."""

    name: ClassVar[str] = RESTARTING
    handles: ClassVar[frozenset[type[Event]]] = frozenset(
        {QueryProgress, QueryStopped, QueryStarted, QueryTerminated, ActionFailed}
    )
    ignores: ClassVar[Mapping[type[Event], str]] = {
        QuerySubmitted: "it was answered, or the query would not run",
        QueryIdle: "it changes nothing about the stop",
        ActionDone: "the query has stopped when it says so",
    }

    target: int

    def enter(self, context: Context) -> None:
        """Order the stop."""
        context.stop(self.target)

    def resources_changed(self, context: Context) -> None:
        """Leave it out: the slots are looked at again when the query has stopped."""

    def on(self, event: Event, context: Context) -> None:
        """Wait for the stop, and look again at the slots when it has come."""
        match event:
            case QueryProgress() if event.run == context.record.run:
                context.measured(event, warm=True)
            case QueryStopped():
                self._stopped(context)
            case QueryStarted():
                context.started(event)
                context.close_rescale("exception_occurred")
                context.execute()
            case QueryTerminated():
                context.finish(event)
            case ActionFailed():
                self._failed(context)

    def _stopped(self, context: Context) -> None:
        context.record.gate = "stopped"
        if context.choose_start().partitions == self.target:
            context.create_execution_graph(planned=self.target)
        else:
            context.wait_for_resources()

    def _failed(self, context: Context) -> None:
        order = context.order
        if order is not None and order.kind == "stop":
            context.record.stop_ordered = None
            context.close_rescale("exception_occurred")
            context.execute()
