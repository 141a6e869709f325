"""What all states have in common.

A state is plain data: what the query is doing, and since when. Its table of `reactions` names each event
that it can meet, with what it does about it or why it leaves it out; anything else is reported as making no
sense. A state sets no timers: it says until when it waits (`due`), and the machine keeps one timer in step
with that, which dies with the state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from attrs import define

from spark_elastic.core import events as ev
from spark_elastic.core.failures.summary import summary
from spark_elastic.core.query import internal_events as inner
from spark_elastic.core.task_events import ExecutorsUsed, StageCompleted

if TYPE_CHECKING:
    from spark_elastic.core.query.record import QueryRecord
    from spark_elastic.core.query.step import Step
    from spark_elastic.core.rescale.concurrency import Candidate
    from spark_elastic.core.turn import Turn

Reaction = Callable[[Any, Any, Any], None] | str
"""What a state does, as a function of the state, the event and the step; or why it leaves the event out."""

Reactions = Mapping[type[Any], Reaction]


@define(kw_only=True)
class State(ABC):
    """One state of one query; `entered` is when it was reached (epoch ms).

    `final` says that nothing more can happen, `starting` that a start is ordered, `ending` that the end is;
    `looks_at_failures_later` that a failure of the run waits for something else.
    """

    name: ClassVar[str]
    final: ClassVar[bool] = False
    starting: ClassVar[bool] = False
    ending: ClassVar[bool] = False
    looks_at_failures_later: ClassVar[bool] = False

    entered: int

    @property
    def due(self) -> int | None:
        """The time at which `due_reached` is to be called, None if there is none."""
        return None

    @property
    def moving_until(self) -> int | None:
        """The time until which the query counts as moving its state, None if it does not."""
        return None

    def candidate(self, record: QueryRecord) -> Candidate | None:
        """Return the move of its state that the query waits for, None if there is none."""
        return None

    @abstractmethod
    def enter(self, step: Step) -> None:
        """Begin."""

    def due_reached(self, step: Step) -> None:
        """React to the time that `due` has named."""
        raise AssertionError(f"{self.name} is never due")

    def lets_pass(self, record: QueryRecord, turn: Turn) -> bool:
        """Let other slots pass that make no difference to the query; return whether it has."""
        return False

    def validate(self, record: QueryRecord) -> None:
        """Check the state's own invariants. Raises AssertionError."""
        assert self.entered >= 0

    def handles(self, event: ev.Event) -> bool:
        """Say whether the state does something about such an event."""
        return callable(self.reactions.get(type(event)))

    def leaves_out(self, event: ev.Event) -> bool:
        """Say whether the state leaves such an event out on purpose."""
        return isinstance(self.reactions.get(type(event)), str)

    def cancel(self, event: ev.CancelRequested, step: Step) -> None:
        """End the query for whoever wants that."""
        step.cancel(event.by)

    def restart_or_fail(self, event: ev.QueryFailed, step: Step) -> None:
        """Start the query again, or let it end."""
        step.run_failed(event.failure)

    def finish(self, event: ev.QueryTerminated, step: Step) -> None:
        """Take the end for what it is."""
        if event.error is None:
            step.end("finished", "job_finished")
        else:
            error = summary(event.error)
            named = event.error_class is None or event.error_class in error
            error = error if named else f"[{event.error_class}] {error}"
            step.end("query_failed", "job_failed", {"error": error})

    def finish_with_its_run(self, event: inner.Superseded, step: Step) -> None:
        """End with the run that the query had."""
        step.end("superseded", "job_finished")

    def note_the_rest(self, event: ev.QueryIdle, step: Step) -> None:
        """Take in that there is nothing to read; it changes what is shown of the load."""
        step.resting()

    def measure_the_stage(self, event: StageCompleted, step: Step) -> None:
        """Note what it took: nothing follows from it before its micro-batch is through."""
        step.record.shuffles.stage_read_shuffle()
        step.record.measurements.add_stage(event)

    def note_their_begin(self, event: ExecutorsUsed, step: Step) -> None:
        """Note for the history of rescales when they began."""
        step.record.history.used(event.executors)

    def go_by_the_settings(self, event: inner.SettingsChanged, step: Step) -> None:
        """Go by other settings from now on."""
        step.change_settings(event.settings)

    def note_the_savepoint(self, event: ev.SavepointTaken, step: Step) -> None:
        """Note it, whoever has waited for it; the next one may be asked for."""
        step.saved(event)
        step.record.orders.pop(event.action, None)

    def refuse_the_savepoint(self, event: ev.SavepointRequested, step: Step) -> None:
        """Say that there is nothing to copy."""
        step.report("savepoint_refused", numbers={"state": self.name})

    # What all states do alike; each one's table begins with this.
    reactions: ClassVar[Reactions] = {
        ev.CancelRequested: cancel,
        ev.SavepointRequested: refuse_the_savepoint,
        ev.SavepointTaken: note_the_savepoint,
        ev.QueryIdle: note_the_rest,
        ev.QuerySubmitted: "it was answered, or the query would not run",
        ev.QueryFailed: restart_or_fail,
        ev.QueryTerminated: finish,
        StageCompleted: measure_the_stage,
        ExecutorsUsed: note_their_begin,
        inner.SettingsChanged: go_by_the_settings,
        inner.Superseded: finish_with_its_run,
        inner.SlotsChanged: "the slots are looked at when the query runs",
        inner.BoundsChanged: "the bounds are looked at when the query runs",
        inner.MoveGranted: "only a query that runs waits to move its state",
        inner.MoveQueued: "only a query that runs waits to move its state",
        ev.TimerFired: "what is due is done before any event",
    }
