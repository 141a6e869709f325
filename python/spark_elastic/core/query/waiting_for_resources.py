"""WaitingForResources: the query is held at its gate, or has stopped, until there are enough slots."""

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
    QueryInfo,
    QueryProgress,
    QueryStarted,
    QuerySubmitted,
    QueryTerminated,
    SavepointTaken,
)
from spark_elastic.core.query.context import Context
from spark_elastic.core.query.state import State
from spark_elastic.core.query.transition_manager import TransitionManager
from spark_elastic.core.query.transitions import WAITING_FOR_RESOURCES
from spark_elastic.core.reasons import LIMIT, NO_LIMIT, fill


@define(kw_only=True)
class WaitingForResources(State):
    """A query without a start: `deadline` is when it goes on regardless (epoch ms), None for never."""

    name: ClassVar[str] = WAITING_FOR_RESOURCES
    handles: ClassVar[frozenset[type[Event]]] = frozenset(
        {CancelRequested, QuerySubmitted, QueryStarted, QueryFailed, QueryTerminated}
    )
    ignores: ClassVar[Mapping[type[Event], str]] = {
        SavepointTaken: "it is kept with the query",
        QueryProgress: "it is about a run that is over",
        QueryIdle: "it is about a run that is over",
        ActionDone: "the outcome of the stop came as an event of its own",
        ActionFailed: "what could not be done was of use to a run that is over",
    }

    deadline: int | None
    manager: TransitionManager

    @property
    def due(self) -> int | None:
        """The end of the wait, or of the time in which more slots may come."""
        return min((at for at in (self.deadline, self.manager.due) if at is not None), default=None)

    def enter(self, context: Context) -> None:
        """Go on at once if the slots are there already, or if it may not wait."""
        if self.deadline is not None and context.now >= self.deadline:
            self.due_reached(context)
        else:
            self.resources_changed(context)

    def resources_changed(self, context: Context) -> None:
        """Go on as soon as there are enough."""
        resources = context.submission_resources()
        if self.manager.change(context.now, resources) or self.manager.trigger(context.now, resources):
            context.create_execution_graph()
        else:
            self._say(context)

    def requirements_changed(self, context: Context) -> None:
        """Look again, in the history under the new bounds."""
        context.open_rescale_for_bounds()
        self.resources_changed(context)

    def due_reached(self, context: Context) -> None:
        """Go on, with what there is by now: below its lower bounds an adaptive query fails.

        One that we have stopped ourselves does not: it would run if it had been left alone.
        """
        if self.deadline is not None and context.now >= self.deadline:
            waited_ms = context.now - self.entered
            if context.may_start or context.record.gate == "stopped":
                context.create_execution_graph(waited_ms=waited_ms)
            else:
                context.fail_without_resources(waited_ms)
        elif self.manager.advance(context.now, context.submission_resources()):
            context.create_execution_graph()
        else:
            self._say(context)

    def on(self, event: Event, context: Context) -> None:
        """Answer a repeated question, or follow a start that was not ours."""
        match event:
            case CancelRequested():
                context.cancel(event.by)
            case QueryFailed():
                context.run_failed(event.failure)
            case QuerySubmitted():
                self._say_again(context)
            case QueryStarted():
                context.started(event)
                context.report("started_unasked", after=context.record.partitions)
                context.close_rescale("succeeded")
                context.execute()
            case QueryTerminated():
                context.finish(event)

    def found_again(self, info: QueryInfo, context: Context) -> None:
        """Say again what it waits for."""
        self._say_again(context)

    def _say_again(self, context: Context) -> None:
        context.record.last_hold = None
        self._say(context)

    def _say(self, context: Context) -> None:
        if self.manager.phase in ("Stabilizing", "Stabilized"):
            context.hold(
                "waiting_for_more",
                until=self.manager.waits_until,
                numbers={
                    "needed": context.needed_slots,
                    "stabilization_ms": self.manager.stabilization_ms,
                },
            )
        else:
            wait_ms = context.settings.resource_wait_ms
            context.hold(
                "waiting_for_resources",
                until=self.deadline,
                numbers={
                    "needed": context.needed_slots,
                    "limit": NO_LIMIT if self.deadline is None else fill(LIMIT, wait_ms=wait_ms),
                },
            )

    def validate(self) -> None:
        """Check the manager. Raises AssertionError."""
        self.manager.validate()
