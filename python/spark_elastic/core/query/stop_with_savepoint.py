"""StopWithSavepoint: the query stops at its next micro-batch boundary, is copied there, and ends.

A copy that fails leaves nothing, and the query runs on. A query that fails on its way to the boundary has its
last one behind it: the savepoint is taken there, and only then the failure is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from attrs import define

from spark_elastic.core.events import (
    ActionDone,
    ActionFailed,
    CancelRequested,
    Event,
    Failure,
    QueryFailed,
    QueryIdle,
    QueryInfo,
    QueryProgress,
    QueryStarted,
    QueryStopped,
    QuerySubmitted,
    QueryTerminated,
    SavepointTaken,
)
from spark_elastic.core.query.context import Context
from spark_elastic.core.query.state import State
from spark_elastic.core.query.transitions import STOP_WITH_SAVEPOINT


@define(kw_only=True)
class StopWithSavepoint(State):
    """A query that is stopping for good: `target` is the folder under which its savepoint is to stand.

    `failure` is that of its run if it failed on its way, `order` is the savepoint's, `path` where it stands
    once it does.
    """

    name: ClassVar[str] = STOP_WITH_SAVEPOINT
    handles: ClassVar[frozenset[type[Event]]] = frozenset(
        {
            CancelRequested,
            QueryFailed,
            QueryProgress,
            QueryStarted,
            QueryStopped,
            QueryTerminated,
            SavepointTaken,
            ActionFailed,
        }
    )
    ignores: ClassVar[Mapping[type[Event], str]] = {
        QuerySubmitted: "it was answered, or the query would not run",
        QueryIdle: "it changes nothing about the stop",
        ActionDone: "the query has stopped, and the savepoint is there, when they say so",
    }

    target: str
    failure: Failure | None = None
    order: str | None = None
    path: str | None = None

    def enter(self, context: Context) -> None:
        """Order the stop."""
        context.stop(None)

    def resources_changed(self, context: Context) -> None:
        """Leave it out: if the query is started again, the slots are looked at then."""

    def found_again(self, info: QueryInfo, context: Context) -> None:
        """Order again what is not known to have come about: the stop, the savepoint, or the end."""
        if self.path is not None:
            self._saved(context)
        elif context.record.gate == "running":
            context.stop(None)
        else:
            self._save(context)

    def on(self, event: Event, context: Context) -> None:
        """Wait for the stop, then for the savepoint, then for the end."""
        match event:
            case CancelRequested():
                context.cancel(event.by)
            case QueryProgress() if event.run == context.record.run:
                context.measured(event, warm=True)
            case QueryStopped():
                context.record.gate = "stopped"
                self._save(context)
            case QueryFailed() if context.record.gate == "running":
                context.record.gate = "failed"
                self.failure = event.failure
                self._save(context)
            case QueryStarted():
                context.started(event)
                context.execute()
            case SavepointTaken() if event.action == self.order:  # another one may have been under way
                self.path = event.path
                self._saved(context)
            case ActionFailed():
                self._order_failed(context)
            case QueryTerminated():
                context.finish(event)

    def _save(self, context: Context) -> None:
        # Said before the copy is ordered: who waits for nothing is started again after a while.
        context.hold("taking_savepoint", until=None, numbers={"target": self.target})
        self.order = context.take_savepoint(self.target)

    def _saved(self, context: Context) -> None:
        if self.failure is None:
            context.stop_for_good()
        else:
            context.run_failed(self.failure, savepoint=self.path)

    def _order_failed(self, context: Context) -> None:
        order = context.order
        if order is not None and order.kind == "stop" and self.failure is None:
            # A repeated stop is refused while the first one is still carried out.
            if not context.record.is_stopping:
                context.execute()
        elif order is not None and order.action == self.order:
            if self.failure is None:
                context.wait_for_resources()
            else:
                context.run_failed(self.failure)
