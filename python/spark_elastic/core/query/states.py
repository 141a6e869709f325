"""The base of all states, and the small ones: most of those are only passed through."""

from __future__ import annotations

from typing import ClassVar

from attrs import define

from spark_elastic.core import events as ev
from spark_elastic.core.events import ExecutorsUsed, StageCompleted
from spark_elastic.core.failures.judge import summary
from spark_elastic.core.query import internal_events as inner
from spark_elastic.core.query.record import QueryRecord, Reactions, State
from spark_elastic.core.query.step import Step
from spark_elastic.core.rescale.concurrency import PATIENCE_MS
from spark_elastic.core.transitions import (
    CANCELING,
    CREATED,
    CREATING_EXECUTION_GRAPH,
    FAILING,
    FINISHED,
)


@define(kw_only=True)
class QueryState(State):
    """A state with the reactions that all states share."""

    def cancel(self, event: ev.CancelRequested, step: Step) -> None:
        """End the query as requested."""
        step.cancel(event.by)

    def restart_or_fail(self, event: ev.QueryFailed, step: Step) -> None:
        """Restart the query, or let it end."""
        step.run_failed(event.failure)

    def finish(self, event: ev.QueryTerminated, step: Step) -> None:
        """Record the end as reported."""
        if event.error is None:
            step.end("finished", "job_finished")
        else:
            error = summary(event.error)
            named = event.error_class is None or event.error_class in error
            error = error if named else f"[{event.error_class}] {error}"
            step.end("query_failed", "job_failed", {"error": error})

    def finish_with_its_run(self, event: inner.Superseded, step: Step) -> None:
        """End together with the query's run."""
        step.end("superseded", "job_finished")

    def note_the_rest(self, event: ev.QueryIdle, step: Step) -> None:
        """Note that there is nothing to read; it changes the load that is shown."""
        step.resting()

    def measure_the_stage(self, event: StageCompleted, step: Step) -> None:
        """Record the stage's work; it has no effect before its micro-batch has completed."""
        step.record.load.shuffles.stage_read_shuffle()
        step.record.load.measurements.add_stage(event)

    def note_their_begin(self, event: ExecutorsUsed, step: Step) -> None:
        """Note for the history of rescales when the executors began."""
        step.record.history.used(event.executors)

    def go_by_the_settings(self, event: inner.SettingsChanged, step: Step) -> None:
        """Apply the new settings."""
        step.change_settings(event.settings)

    def note_the_savepoint(self, event: ev.SavepointTaken, step: Step) -> None:
        """Note the savepoint, whoever has waited for it; the next one may be requested."""
        step.saved(event)
        step.record.orders.pending.pop(event.action, None)

    def refuse_the_savepoint(self, event: ev.SavepointRequested, step: Step) -> None:
        """Report that there is nothing to copy."""
        step.report("savepoint_refused", numbers={"state": self.name})

    # The reactions that all states share; the table of each one begins with these.
    reactions: ClassVar[Reactions] = {
        ev.CancelRequested: cancel,
        ev.SavepointRequested: refuse_the_savepoint,
        ev.SavepointTaken: note_the_savepoint,
        ev.BatchPlanned: "the policies follow it",
        ev.QueryIdle: note_the_rest,
        ev.QuerySubmitted: "already answered, or the query would not run",
        ev.QueryFailed: restart_or_fail,
        ev.QueryTerminated: finish,
        StageCompleted: measure_the_stage,
        ExecutorsUsed: note_their_begin,
        inner.SettingsChanged: go_by_the_settings,
        inner.Superseded: finish_with_its_run,
        inner.SlotsChanged: "slots are evaluated when the query runs",
        inner.BoundsChanged: "bounds are evaluated when the query runs",
        inner.MoveGranted: "only a running query waits to move its state",
        inner.MoveQueued: "only a running query waits to move its state",
        ev.TimerFired: "due work is done before any event",
    }


@define(kw_only=True)
class Created(QueryState):
    """A query that was submitted, or found in a snapshot, with the failure of its last run if any."""

    name: ClassVar[str] = CREATED

    failure: ev.Failure | None = None

    def enter(self, step: Step) -> None:
        """Adopt a running query as it is, handle the failure of a failed one, else wait for the start."""
        if step.record.run_state == "running":
            step.report("adopted", before=step.record.partitions)
            step.execute()
        elif self.failure is not None:
            step.run_failed(self.failure)
        else:
            step.open_rescale("initial_schedule")
            step.wait_for_resources()

    def begin(self, event: inner.Begun, step: Step) -> None:
        """Leave at once."""
        self.enter(step)

    reactions: ClassVar[Reactions] = {inner.Begun: begin}


_ABOUT_TO_END = "the query is about to end"


@define(kw_only=True)
class Ending(QueryState):
    """A query that will end."""

    ending: ClassVar[bool] = True

    def order_the_end_again(self, event: inner.Recovered, step: Step) -> None:
        """Order the end again."""
        self.enter(step)

    reactions: ClassVar[Reactions] = {
        **QueryState.reactions,
        ev.QuerySubmitted: _ABOUT_TO_END,
        ev.QueryFailed: _ABOUT_TO_END,
        ev.QueryProgress: _ABOUT_TO_END,
        ev.ActionDone: "the query's own event ends it",
        ev.ActionFailed: "an order that cannot be withdrawn reports its outcome",
        inner.Recovered: order_the_end_again,
        inner.SlotsChanged: _ABOUT_TO_END,
        inner.BoundsChanged: _ABOUT_TO_END,
    }


@define(kw_only=True)
class Canceling(Ending):
    """A query that is stopping permanently."""

    name: ClassVar[str] = CANCELING

    def enter(self, step: Step) -> None:
        """Order the stop."""
        step.stop_for_good()

    def finish_as_canceled(self, event: ev.QueryTerminated, step: Step) -> None:
        """Treat the end as the one that was requested, however it came about."""
        step.end("canceled", "job_canceled")

    reactions: ClassVar[Reactions] = {
        **Ending.reactions,
        ev.QueryStarted: "it is stopped anyway",
        ev.CancelRequested: "already requested",
        ev.QueryTerminated: finish_as_canceled,
    }


@define(kw_only=True)
class Failing(Ending):
    """A query that is ending; `message` gives the reason where its run has no exception of its own."""

    name: ClassVar[str] = FAILING

    message: str | None = None

    def enter(self, step: Step) -> None:
        """Order the end."""
        step.end_failed(self.message)

    def cancel_the_run(self, event: ev.QueryStarted, step: Step) -> None:
        """End the query anyway: the shim had no answer in time and let it run as plain Spark."""
        step.started(event)
        step.cancel("spark-elastic")

    reactions: ClassVar[Reactions] = {**Ending.reactions, ev.QueryStarted: cancel_the_run}


_LATE = "it was under way when the query ended"


@define(kw_only=True)
class Finished(QueryState):
    """A finished query that is kept for inspection."""

    name: ClassVar[str] = FINISHED
    final: ClassVar[bool] = True

    def enter(self, step: Step) -> None:
        """Do nothing."""

    def validate(self, record: QueryRecord) -> None:
        """Check that nothing is outstanding. Raises AssertionError."""
        assert not record.orders.pending
        assert record.history.open_record is None

    reactions: ClassVar[Reactions] = {
        **QueryState.reactions,
        ev.QueryStarted: _LATE,
        ev.QueryProgress: _LATE,
        ev.QueryFailed: _LATE,
        ev.CancelRequested: "already ended",
        ev.QueryTerminated: "already known",
        ev.ActionDone: _LATE,
        ev.ActionFailed: _LATE,
    }


@define(kw_only=True)
class Moving(QueryState):
    """A query whose state may be in the process of moving: it counts against the limit until `moving_until`.

    That is an epoch time in ms, None if nothing is moved, or if the move no longer counts.
    """

    moving_until: int | None = None

    @property
    def due(self) -> int | None:
        """The time after which others no longer wait for this move."""
        return self.moving_until

    def due_reached(self, step: Step) -> None:
        """Let others begin: the outcome may take until the end of a micro-batch."""
        self.moving_until = None
        record = step.record
        if record.target is not None and record.target != record.partitions:  # else it was called off
            step.report_unfinished(record.target)


@define(kw_only=True)
class CreatingExecutionGraph(Moving):
    """A query with an ordered start; `waited_ms` is its wait if that has used up the allowed time."""

    name: ClassVar[str] = CREATING_EXECUTION_GRAPH
    starting: ClassVar[bool] = True

    waited_ms: int = 0

    def enter(self, step: Step) -> None:
        """Choose with the current slots and order the start; below its lower bounds the query fails."""
        if step.may_start:
            choice = step.choose_start()
            step.report_choice(choice)
            step.start(choice)
            self.moving_until = step.now + PATIENCE_MS if step.is_to_move else None
        else:
            step.fail_without_resources(self.waited_ms)

    def open_the_next_record(self, event: inner.BoundsChanged, step: Step) -> None:
        """Continue, with a record under the new bounds, which are considered as soon as the query runs."""
        step.open_rescale_for_bounds()

    def order_the_start_again(self, event: inner.Recovered, step: Step) -> None:
        """Order the start again, unless the query lacks the slots for it by now."""
        if step.may_start:
            self.enter(step)
        else:
            step.wait_for_resources()

    def execute(self, event: ev.QueryStarted, step: Step) -> None:
        """Record that the query runs, with the ordered count or another one."""
        target = step.record.target
        step.started(event)
        if target is not None and event.partitions != target:
            step.record.moves.failed.failed(target, step.now)
            step.close_rescale("exception_occurred")
        step.close_rescale("succeeded")
        step.execute()

    def wait_on(self, event: ev.ActionFailed, step: Step) -> None:
        """Keep waiting: the shim continues with the old count, and reports it by an event of its own."""
        if step.order is not None and step.order.kind == "start":
            step.close_rescale("exception_occurred")
            self.moving_until = None

    reactions: ClassVar[Reactions] = {
        **QueryState.reactions,
        ev.QuerySubmitted: "the answer was sent",
        ev.QueryStarted: execute,
        ev.QueryProgress: "it is about a batch before the failure",
        ev.ActionDone: "the query's own event starts it",
        ev.ActionFailed: wait_on,
        inner.Recovered: order_the_start_again,
        inner.BoundsChanged: open_the_next_record,
    }
