"""Restarting: a change of the running query at the next boundary, or a restart after a backoff.

For a rescale, the state of the query is moved at its next micro-batch boundary, in the same run; if it was
copied before, the query only switches over to the copy. After a
failure, the query waits at the boundary before the failed batch, and continues when the backoff of its
restart strategy has ended.
"""

from __future__ import annotations

from typing import ClassVar

from attrs import define

from spark_elastic.core import events as ev
from spark_elastic.core.query import internal_events as inner
from spark_elastic.core.query.preparing import usual_ms
from spark_elastic.core.query.record import QueryRecord, Reactions
from spark_elastic.core.query.states import Moving, QueryState
from spark_elastic.core.query.step import Step
from spark_elastic.core.rescale.preparation import Preparation
from spark_elastic.core.transitions import RESTARTING


@define(kw_only=True)
class Restarting(Moving):
    """A query that is about to continue with another count, or after a failure.

    `target` is the count of the ordered rescale, None after a failure; then `backoff_end` is when the query
    may continue (epoch ms). `overdue` says that any growth should be carried out. `copied` is the copy of the
    state for which the rescale was ordered, None without one.
    """

    name: ClassVar[str] = RESTARTING

    target: int | None
    backoff_end: int | None = None
    overdue: bool = False
    copied: Preparation | None = None

    @property
    def due(self) -> int | None:
        """The end of the backoff, or of the time for which others wait for the rescale."""
        return self.moving_until if self.backoff_end is None else self.backoff_end

    def enter(self, step: Step) -> None:
        """Order the rescale, or report until when a failed query waits."""
        if self.target is not None:
            step.rescale(self.target)
        else:
            self._back_off(step)

    def choose_again(self, event: inner.SlotsChanged, step: Step) -> None:
        """Order the count that suits the current slots: the boundary may be far. Ignored after a failure."""
        self._choose_again(step)

    def _choose_again(self, step: Step) -> None:
        if self.target is None:
            return
        choice = step.choose_again(overdue=self.overdue)
        present = step.record.partitions
        # State that a replaced order has moved stays as it is until a micro-batch has run with it.
        moves = choice.way == "move" and not step.record.moves.moved
        wanted = choice.partitions if moves else present
        if wanted is not None and wanted != self.target:
            self.target = wanted
            reason = "rescale_called_off" if wanted == present else "rescale_changed"
            step.report_choice(choice, reason=reason)
            step.rescale(wanted)

    def choose_within_bounds(self, event: inner.BoundsChanged, step: Step) -> None:
        """Choose again, with a record in the history under the new bounds."""
        step.open_rescale_for_bounds()
        self._choose_again(step)

    def order_again(self, event: inner.Recovered, step: Step) -> None:
        """Order the rescale again unless it has completed, or report again until when the query waits."""
        if self.target is None:
            step.record.told.hold = None
            self._back_off(step)
        elif step.record.moves.moved and step.record.partitions == self.target and not step.may_move_on:
            self._through(step)
        elif step.record.moves.moved:
            # A replaced order has been carried out, and another one may still be on its way.
            self.target = present = step.record.partitions
            assert present is not None
            step.report("rescale_called_off", before=present)
            step.rescale(present)
        else:
            step.report("rescaled_again", before=step.record.partitions, after=self.target)
            step.rescale(self.target)

    def take_the_savepoint(self, event: ev.SavepointRequested, step: Step) -> None:
        """Take the savepoint; refuse one with which the query should stop."""
        if event.stop:
            self.refuse_the_savepoint(event, step)
        else:
            step.take_savepoint(event)

    def due_reached(self, step: Step) -> None:
        """Start again as soon as there are resources, or let others move their state."""
        if self.target is None:
            step.wait_for_resources()
        else:
            Moving.due_reached(self, step)

    def call_it_off(self, event: ev.QueryStarted, step: Step) -> None:
        """Follow a start that the policy did not order: the pending rescale or restart is off."""
        step.started(event)
        step.close_rescale("exception_occurred")
        step.execute()

    def _back_off(self, step: Step) -> None:
        assert self.backoff_end is not None
        step.hold("backing_off", until=self.backoff_end, numbers={"backoff_ms": self.backoff_end - step.now})

    def measure(self, event: ev.QueryProgress, step: Step) -> None:
        """Record a batch that ran before the boundary, or with the state moved there."""
        if self.target is not None:
            step.record.history.ran_until(step.now)
            if event.partitions > 0:  # where events are merged, this can come before the outcome
                step.rescaled(event.partitions, took_ms=None)
        # Until the switch, changes are copied beside the micro-batches.
        beside = self.copied is not None and not step.record.moves.moved
        if self.copied is not None and beside:
            self.copied = self.copied.slowed(event.duration_ms, usual_ms(step.record, event.partitions))
        step.measured(event, warm=not beside)

    def execute_when_moved(self, event: ev.ActionDone, step: Step) -> None:
        """Record that the state was moved."""
        order = step.rescale_order
        if order is not None and order.target is not None:
            copied = self.copied if event.prepared else None
            step.rescaled(order.target, took_ms=event.took_ms, copied=copied)
            if not order.replaced:
                self._through(step)

    def _through(self, step: Step) -> None:
        opened = step.record.history.open_record
        changed = opened is not None and opened.partitions_before != step.record.partitions
        step.close_rescale("succeeded" if changed else "no_resources_or_parallelisms_change")
        step.execute()

    def back_off_or_fail(self, event: ev.QueryFailed, step: Step) -> None:
        """Give the rescale up, and restart the query or let it end."""
        if self.target is None:
            return  # reported twice, by a snapshot and by an event of its own
        # It failed before the boundary: the rescale is off.
        judgement = step.judge(event.failure)
        if judgement.backoff_ms is None:
            step.fail()
        else:
            step.record.failures.restarted += 1
            self.target = self.moving_until = self.copied = None
            self.backoff_end = step.now + judgement.backoff_ms
            self._back_off(step)

    def execute_as_before(self, event: ev.ActionFailed, step: Step) -> None:
        """Continue with the previous count."""
        order = step.rescale_order
        if order is not None and not order.replaced:
            step.close_rescale("exception_occurred")
            step.execute()

    def validate(self, record: QueryRecord) -> None:
        """Check that it waits for exactly one thing. Raises AssertionError."""
        assert (self.target is None) != (self.backoff_end is None)
        assert record.run_state == ("failed" if self.target is None else "running")
        assert record.target == self.target
        assert (self.moving_until is None and self.copied is None) or self.target is not None

    reactions: ClassVar[Reactions] = {
        **QueryState.reactions,
        ev.QueryStarted: call_it_off,
        ev.QueryProgress: measure,
        ev.QueryFailed: back_off_or_fail,
        ev.SavepointRequested: take_the_savepoint,
        ev.ActionDone: execute_when_moved,
        ev.ActionFailed: execute_as_before,
        inner.Recovered: order_again,
        inner.SlotsChanged: choose_again,
        inner.BoundsChanged: choose_within_bounds,
    }
