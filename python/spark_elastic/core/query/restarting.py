"""Restarting: one run is over or about to be, the next one is to come.

For a rescale the query stops at its next micro-batch boundary and starts again with another count. After a
failure it has ended by itself, and starts again when the backoff of its restart strategy is over.
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
    QueryFailed,
    QueryIdle,
    QueryInfo,
    QueryProgress,
    QueryStarted,
    QueryStopped,
    QuerySubmitted,
    QueryTerminated,
    SavepointRequested,
    SavepointTaken,
)
from spark_elastic.core.query.context import Context
from spark_elastic.core.query.state import State
from spark_elastic.core.query.transitions import RESTARTING


@define(kw_only=True)
class Restarting(State):
    """A query between two runs.

    `target` is the count that the restart is for, None after a failure; then `backoff_end` is when the next
    run may start (epoch ms).
    """

    name: ClassVar[str] = RESTARTING
    handles: ClassVar[frozenset[type[Event]]] = frozenset(
        {
            CancelRequested,
            QueryFailed,
            QueryProgress,
            QueryStopped,
            QueryStarted,
            QueryTerminated,
            ActionFailed,
        }
    )
    ignores: ClassVar[Mapping[type[Event], str]] = {
        SavepointTaken: "it is kept with the query",
        QuerySubmitted: "it was answered, or the query would not run",
        QueryIdle: "it changes nothing about the stop",
        ActionDone: "the query has stopped when it says so",
    }

    target: int | None
    backoff_end: int | None = None

    @property
    def due(self) -> int | None:
        """The end of the backoff."""
        return self.backoff_end

    def enter(self, context: Context) -> None:
        """Order the stop of a run that is not over yet, or say until when a failed query waits."""
        if self.target is not None:
            context.stop(self.target)
        else:
            self._back_off(context)

    def resources_changed(self, context: Context) -> None:
        """Leave it out: the slots are looked at again when the query may start."""

    def requirements_changed(self, context: Context) -> None:
        """Go on, in the history under the new bounds."""
        context.open_rescale_for_bounds()

    def found_again(self, info: QueryInfo, context: Context) -> None:
        """Order the stop again, or say again until when the query waits."""
        record = context.record
        if self.target is not None:
            paused_since = record.paused_since
            context.report("stopped_again", before=record.partitions, after=self.target)
            context.stop(self.target)
            record.paused_since = paused_since
        else:
            record.last_hold = None
            self._back_off(context)

    def savepoint_requested(self, event: SavepointRequested, context: Context) -> None:
        """Take it, whether a run is about to stop or none is there; what is to end is canceled."""
        if event.stop:
            context.refuse_savepoint()
        else:
            context.take_savepoint(event.target)

    def due_reached(self, context: Context) -> None:
        """Start again, as soon as there are resources."""
        context.wait_for_resources()

    def on(self, event: Event, context: Context) -> None:
        """Wait for the stop, and look again at the slots when it has come."""
        match event:
            case CancelRequested():
                context.cancel(event.by)
            case QueryProgress() if event.run == context.record.run:
                context.measured(event, warm=True)
                if self.target is not None:
                    context.ran_until_now()
            case QueryStopped():
                self._stopped(context)
            case QueryFailed():
                self._failed(event, context)
            case QueryStarted():
                context.started(event)
                context.close_rescale("exception_occurred")
                context.execute()
            case QueryTerminated():
                context.finish(event)
            case ActionFailed():
                self._stop_failed(context)

    def _back_off(self, context: Context) -> None:
        assert self.backoff_end is not None
        context.hold(
            "backing_off", until=self.backoff_end, numbers={"backoff_ms": self.backoff_end - context.now}
        )

    def _stopped(self, context: Context) -> None:
        context.record.gate = "stopped"
        if self.target is not None and context.choose_start().partitions == self.target:
            context.create_execution_graph(planned=self.target)
        elif self.target is not None and not context.may_start:
            context.create_execution_graph()  # it ran until now: no lower bound is to keep it from that
        else:
            context.wait_for_resources()

    def _failed(self, event: QueryFailed, context: Context) -> None:
        if self.target is None:
            return  # told twice, by a snapshot and by an event of its own
        # It failed on its way to the stop: there is nothing left to stop, and the rescale is off.
        judgement = context.judge(event.failure)
        if judgement.backoff_ms is None:
            context.fail()
        else:
            self.target = None
            self.backoff_end = context.now + judgement.backoff_ms
            self._back_off(context)

    def _stop_failed(self, context: Context) -> None:
        order, record = context.order, context.record
        # An order that was repeated is refused while the first one is still carried out.
        if order is not None and order.kind == "stop" and not record.is_stopping:
            record.paused_since = None
            context.close_rescale("exception_occurred")
            context.execute()

    def validate(self) -> None:
        """Check that it waits for one thing. Raises AssertionError."""
        assert (self.target is None) != (self.backoff_end is None)
