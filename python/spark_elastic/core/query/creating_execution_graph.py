"""CreatingExecutionGraph: the count is chosen, the start is ordered, the query passes its gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from attrs import define, evolve

from spark_elastic.core.events import (
    ActionDone,
    ActionFailed,
    CancelRequested,
    Event,
    QueryFailed,
    QueryIdle,
    QueryInfo,
    QueryProgress,
    QueryStarted,
    QuerySubmitted,
    QueryTerminated,
    SavepointTaken,
)
from spark_elastic.core.query.context import Context
from spark_elastic.core.query.state import State
from spark_elastic.core.query.transitions import CREATING_EXECUTION_GRAPH


@define(kw_only=True)
class CreatingExecutionGraph(State):
    """A query whose start is ordered.

    `waited_ms` is how long it had to wait for resources if it did so in vain, `planned` the count that a
    restart was made for, None for other starts. `unheard` says that the query may run already: a snapshot has
    shown it as on its way, and what was said before that is lost.
    """

    name: ClassVar[str] = CREATING_EXECUTION_GRAPH
    handles: ClassVar[frozenset[type[Event]]] = frozenset(
        {CancelRequested, QueryStarted, QueryProgress, QueryFailed, QueryTerminated, ActionFailed}
    )
    ignores: ClassVar[Mapping[type[Event], str]] = {
        SavepointTaken: "it is kept with the query",
        QuerySubmitted: "the answer is on its way",
        QueryIdle: "it is about a run that is over",
        ActionDone: "the query is started when it says so",
    }

    waited_ms: int = 0
    planned: int | None = None
    unheard: bool = False

    def enter(self, context: Context) -> None:
        """Choose with the slots of now and order the start."""
        choice = context.choose_start()
        choice = evolve(choice, numbers={**choice.numbers, "waited_ms": self.waited_ms})
        if self.planned is None:
            below = choice.reason == "start_without_resources" and not context.may_start
            context.report_choice(choice, reason="start_below_lower_bounds" if below else None)
        context.start(choice)

    def resources_changed(self, context: Context) -> None:
        """Leave it out: the slots are looked at again as soon as the query runs."""

    def requirements_changed(self, context: Context) -> None:
        """Go on, in the history under the new bounds; they are looked at as soon as the query runs."""
        context.open_rescale_for_bounds()

    def on(self, event: Event, context: Context) -> None:
        """Wait until the query runs, with the count that was ordered or another one."""
        match event:
            case CancelRequested():
                context.cancel(event.by)
            case QueryFailed():
                context.run_failed(event.failure)
            case QueryStarted():
                self._started(event, context)
            case QueryProgress() if self.unheard:  # any other is about a run that is over
                event = QueryStarted(
                    id=event.id, at=event.at, query=event.query, run=event.run, partitions=event.partitions
                )
                self._started(event, context)
            case QueryTerminated():
                context.finish(event)
            case ActionFailed():
                self._failed(context)

    def found_again(self, info: QueryInfo, context: Context) -> None:
        """Order the start again, unless the query is on its way, or lacks the slots for a first start."""
        if info.phase == "running":
            self.unheard = True
        elif context.may_start or context.record.gate == "stopped":
            self.enter(context)
        else:
            context.wait_for_resources()

    def _failed(self, context: Context) -> None:
        # The shim goes on with the old count, and says so by an event of its own.
        if context.order is not None and context.order.kind == "start":
            context.close_rescale("exception_occurred")

    def _started(self, event: QueryStarted, context: Context) -> None:
        target, before = context.record.target, context.record.partitions
        took_ms, restarted = context.paused_ms, context.record.gate == "stopped"
        context.started(event)
        if target is not None and event.partitions != target:
            context.record.failed_target = target
            context.close_rescale("exception_occurred")
        elif restarted and before == event.partitions:
            context.close_rescale("no_resources_or_parallelisms_change")
        elif took_ms is not None:
            context.report("rescaled", before=before, after=event.partitions, numbers={"took_ms": took_ms})
        context.close_rescale("succeeded")
        context.execute()
