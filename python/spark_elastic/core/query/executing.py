"""Executing: the query runs, and the state decides whether and when it is rescaled.

Decide, recheck and act are three moments. A change of slots or load makes the manager wait. The end of that
wait (a later event) asks again. The state is moved only then, once few enough other queries move theirs.
Where that is possible it is first copied while micro-batches run; the query leaves this state only to switch
over. Changes in place cost nothing and wait for nothing.
"""

from __future__ import annotations

from typing import ClassVar

from attrs import define, evolve

from spark_elastic.core import events as ev
from spark_elastic.core.failures.poison import is_planned
from spark_elastic.core.query import internal_events as inner
from spark_elastic.core.query.preparing import drop_copy, order_copy, prepares_moves, usual_ms
from spark_elastic.core.query.record import QueryRecord, Reactions
from spark_elastic.core.query.states import QueryState
from spark_elastic.core.query.step import Step
from spark_elastic.core.rescale.concurrency import PATIENCE_MS, Candidate
from spark_elastic.core.rescale.history import Cause
from spark_elastic.core.rescale.preparation import Preparation
from spark_elastic.core.rescale.situation import UNTOUCHED_TRIGGERS, Choice
from spark_elastic.core.rescale.transition_manager import TransitionManager
from spark_elastic.core.transitions import EXECUTING
from spark_elastic.core.turn import Turn


@define(kw_only=True)
class Executing(QueryState):
    """A running query.

    `batches` counts those since the start, or since a copy of the state was dropped. `overdue_at` is when
    growth that does not pay is carried out anyway. `again_at` is when a count that could not be put in force
    may be tried again. `lost_at` is when slots were last lost, None once a batch that began later is
    committed: until then Spark is busy making up for the loss, and a rescale would make the query wait for
    that twice. `queued` is the rescale that the manager has agreed to, until the state may be moved.
    `preparing` is the copy of the state that then takes its place; it counts as a move until `moving_until`
    (epoch ms), None without a copy, or if others no longer wait for it. `alone_since` is the time since when
    there has been no slot at all, and `ends_at` is when the query fails for that reason; None without either.
    """

    name: ClassVar[str] = EXECUTING

    manager: TransitionManager
    batches: int = 0
    overdue_at: int | None = None
    again_at: int | None = None
    lost_at: int | None = None
    queued: Candidate | None = None
    preparing: Preparation | None = None
    moving_until: int | None = None
    alone_since: int | None = None
    ends_at: int | None = None

    @property
    def due(self) -> int | None:
        """The end of the manager's present phase, or the next moment that counts as a change on its own."""
        times = (self.manager.due, self.overdue_at, self.again_at, self.moving_until, self.ends_at)
        return min((at for at in times if at is not None), default=None)

    def candidate(self, record: QueryRecord) -> Candidate | None:
        """Return the queued rescale; after a loss of slots, or a move, a micro-batch comes first."""
        return None if self.lost_at is not None or record.moves.moved else self.queued

    def enter(self, step: Step) -> None:
        """Check once for changes that happened while the query was being started."""
        self.again_at = step.record.moves.failed.again_at
        self._look_for_executors(step)
        self._reconsider(step, cause=None)

    def follow_the_slots(self, event: inner.SlotsChanged, step: Step) -> None:
        """Follow the slots."""
        share, before = step.share, step.record.shares.known
        self._look_for_executors(step)
        if share.total < before.total:
            self.lost_at = step.now
        has, had = (share.suffices, share.slots), (before.suffices, before.slots)
        cause: Cause | None = None
        if has != had:
            cause = "new_resources" if has > had else "lost_resources"
        self._reconsider(step, cause)

    def lets_pass(self, record: QueryRecord, turn: Turn) -> bool:
        """Ignore changes of the slots for a query that had all the slots it could use, and still has.

        No decision is needed, and earlier reports stay correct.
        """
        due, share, before = self.due, record.shares.now, record.shares.known
        if (
            record.partitions is None
            or not (share.complete and before.complete)
            or min(share.slots, before.slots) < record.partitions
            or record.moves.failed.count is not None
            or record.history.open_record is not None
            or (due is not None and due <= turn.now)
        ):
            return False
        if share.total < before.total:
            self.lost_at = turn.now
        return True

    def follow_the_bounds(self, event: inner.BoundsChanged, step: Step) -> None:
        """Follow the bounds."""
        self._reconsider(step, cause="update_requirement")

    def wait_as_long_as_they_say(self, event: inner.SettingsChanged, step: Step) -> None:
        """Recompute the waits with the new settings, counted from when they began."""
        step.change_settings(event.settings)
        self._look_for_executors(step)
        self.manager.retime(step.new_executing_manager())
        if self.preparing is not None:
            self._keep_copying(step, _Running(step, self).choice)
        elif self.queued is None:
            self._plan_growth(step, step.choose_running(overdue=self.is_overdue(step)))

    def order_again(self, event: inner.Recovered, step: Step) -> None:
        """Repeat the order to copy the state, or to copy none, or a change in place that is not in force."""
        if self.preparing is not None:
            self._copy_again(step)
            return
        if prepares_moves(step.record, step.settings) and not step.settings.hands_off:
            # The order that has called a copy off may be lost, too.
            drop_copy(step.record, step.turn, step.settings)
        choice = _Running(step, self).choice
        if choice.way == "in_place":
            self._change_in_place(choice, step)

    def due_reached(self, step: Step) -> None:
        """Continue to the next phase; growth that is overdue, or may be tried again, counts as a change."""
        if self.ends_at is not None and step.now >= self.ends_at:
            if step.share.total > 0:  # an executor comes at the moment at which the wait ends
                self._look_for_executors(step)
                return
            assert self.alone_since is not None
            step.fail_without_resources(step.now - self.alone_since)
            return
        if self.moving_until is not None and step.now >= self.moving_until:
            self._lose_patience(step)
            return
        changed = False
        if self.overdue_at is not None and step.now >= self.overdue_at:
            self.overdue_at, changed = None, True
        if self.again_at is not None and step.now >= self.again_at:
            self.again_at, changed = None, True
        now = _Running(step, self)
        if self.preparing is not None:
            self._keep_copying(step, now.choice)
        elif self.manager.advance(step.now, now) or (changed and self.manager.change(step.now, now)):
            self._rescale(step, now.choice)
        else:
            self._say(step, now.choice, aloud=False)

    def take_it_or_stop_with_it(self, event: ev.SavepointRequested, step: Step) -> None:
        """Take the savepoint while the query keeps running, or stop with it."""
        if event.stop:
            step.stop_with_savepoint(event)
        else:
            step.take_savepoint(event)

    def take_over_the_count(self, event: ev.QueryStarted, step: Step) -> None:
        """Record that the query runs with another count than was known."""
        step.started(event)
        self.batches = 0
        if self.preparing is not None:
            self._copy_again(step)  # it was started for a reason that is not known here

    def _look_for_executors(self, step: Step) -> None:
        """Note since when there is no executor, and how long that may last if tasks bring none."""
        if step.share.total > 0:
            self.alone_since = None
        elif self.alone_since is None:
            self.alone_since = step.now
        wait_ms, trigger = step.settings.executor_wait_ms, step.record.facts.trigger
        leaves = step.settings.hands_off or step.may_start or trigger in UNTOUCHED_TRIGGERS
        self.ends_at = None
        if self.alone_since is not None and wait_ms is not None and not leaves:
            self.ends_at = self.alone_since + wait_ms

    def is_overdue(self, step: Step) -> bool:
        """Return whether the last rescale is so long ago that any growth should be carried out."""
        limit_ms = step.settings.scaling_interval_max_ms
        return limit_ms is not None and step.now >= self.manager.created + limit_ms

    def _reconsider(self, step: Step, cause: Cause | None) -> None:
        now = _Running(step, self)
        choice = now.choice
        enough_failed = step.record.failures.batches.take_due()
        if cause is not None:
            step.open_rescale(cause)
        if choice.way == "in_place":
            self._change_in_place(choice, step)
        elif self.preparing is not None:
            self._keep_copying(step, choice)
        elif self.queued is not None:
            self._stay_queued(step, choice)
        elif self.manager.change(step.now, now) or (enough_failed and self.manager.trigger(step.now, now)):
            self._rescale(step, choice)
        else:
            self._say(step, choice, aloud=cause is not None)

    def _change_in_place(self, choice: Choice, step: Step) -> None:
        step.open_rescale("new_resources")
        step.report_choice(choice)
        step.rescale_in_place(choice)

    def measure_and_decide(self, event: ev.QueryProgress, step: Step) -> None:
        """Record the measurements, and use the end of each micro-batch to decide."""
        if self.preparing is not None:
            self.preparing = self.preparing.slowed(event.duration_ms, usual_ms(step.record, event.partitions))
        # The first batch of a run loads classes and state, so it does not predict the next ones. Nor does one
        # beside a copy.
        step.measured(event, warm=self.batches > 0 and self.preparing is None)
        step.record.failures.poison.progressed()
        step.record.failures.batches.committed()
        self.batches += 1
        if self.lost_at is not None and event.started >= self.lost_at:
            self.lost_at = None
        self._watch_files(event, step)
        if not step.record.facts.stateful:
            self._watch_shuffles(event, step)
            return
        now = _Running(step, self)
        phase = self.manager.phase
        if self.preparing is not None:
            self._keep_copying(step, now.choice)
        elif self.queued is not None:
            self._stay_queued(step, now.choice)
        elif (phase == "Idling" and self.manager.change(step.now, now)) or self.manager.trigger(
            step.now, now
        ):
            self._rescale(step, now.choice)
        elif self.manager.phase != phase:
            if self.manager.phase != "Idling":
                step.open_rescale("load_changed")
            self._say(step, now.choice, aloud=False)
        elif step.record.told.hold is not None and now.choice.way != "move":
            step.lift_hold(now.choice)

    @staticmethod
    def _watch_files(event: ev.QueryProgress, step: Step) -> None:
        """Report sources whose unsplittable files are fewer than the slots: more tasks are impossible."""
        sources = zip(step.record.facts.sources, event.sources, strict=False)
        stuck = ", ".join(
            source.name for source, read in sources if read.whole and (read.tasks or 0) < step.slots
        )
        if stuck:
            step.report("files_stay_whole", numbers={"stuck": stuck})

    def _watch_shuffles(self, event: ev.QueryProgress, step: Step) -> None:
        """Let the sources of a query without a shuffle follow the slots; stop once it has one."""
        record = step.record
        if record.load.shuffles.committed(event.input_rows):
            choice = _Running(step, self).choice
            if choice.way == "in_place":
                self._change_in_place(choice, step)
                reading = record.reading(step.settings)
                if reading is not None and reading.can_follow_in_part:
                    numbers = {"stuck": reading.stuck, "help": reading.help}
                    step.report("other_sources_stay", numbers=numbers)
            else:
                self._say(step, choice, aloud=True)
        elif record.load.shuffles.seen and record.load.reads is not None:
            step.read_in(None)

    def count_and_restart_or_fail(self, event: ev.QueryFailed, step: Step) -> None:
        """Count the failure, and restart the query with the manager's phase kept, or let it end.

        The run continues, so a failed micro-batch corresponds to a failed checkpoint in Flink. One that was
        not planned does not count: a source is unavailable, or an earlier move of the state has left
        something behind. Nor does a failure after a loss of slots, which caused it.
        """
        if is_planned(event.failure.offsets) and self.lost_at is None:
            step.record.failures.batches.failed()
        if self.queued is not None or self.preparing is not None:
            self.manager.withdraw()  # the next choice needs the manager's agreement again
        step.record.failures.manager = self.manager
        step.run_failed(event.failure)

    def switch_over_or_take_over_the_count(self, event: ev.ActionDone, step: Step) -> None:
        """Order the rescale for which the state has been copied, or record a change in place."""
        copied = self._answered(step)
        if copied is not None:
            copied = evolve(copied, copy_ms=event.took_ms)
            numbers = {"copy_ms": event.took_ms}
            before, after = step.record.partitions, copied.partitions
            step.report("rescale_prepared", before=before, after=after, numbers=numbers)
            self._move(copied.partitions, step, until=self.moving_until, copied=copied)
            return
        order = step.rescale_order
        if order is not None:
            step.record.partitions = order.target
            if not order.replaced:
                step.record.target = None
                step.close_rescale("succeeded")

    def move_in_a_pause_or_close_the_record(self, event: ev.ActionFailed, step: Step) -> None:
        """Move state that could not be copied in a pause, or close the record of a rescale that failed."""
        uncopied = self._answered(step)
        if uncopied is not None:
            checkpoint = step.record.checkpoint  # what was only expected of it may be wrong
            checkpoint.prepares_moves = checkpoint.prepares_moves and step.record.facts.prepares_moves
            self._move(uncopied.partitions, step, until=self.moving_until)
            return
        order = step.rescale_order
        if order is not None and not order.replaced:
            step.close_rescale("exception_occurred")

    def move_the_state(self, event: inner.MoveGranted, step: Step) -> None:
        """Order the rescale, or the copy before it, with the count that suits the current slots."""
        choice = _Running(step, self).choice
        if choice.way != "move":
            self._stay_queued(step, choice)
            return
        assert choice.partitions is not None
        assert not step.record.moves.moved
        copies, until = prepares_moves(step.record, step.settings), step.now + PATIENCE_MS
        step.report_choice(choice, copies=copies)
        if copies:
            self.queued, self.moving_until = None, until
            self._copy(choice.partitions, step)
        else:
            self._move(choice.partitions, step, until=until)

    def _move(self, target: int, step: Step, *, until: int | None, copied: Preparation | None = None) -> None:
        step.move_state(target, overdue=self.is_overdue(step), until=until, copied=copied)

    # The copy of the state before it is moved

    def _copy(self, target: int, step: Step) -> None:
        """Order a copy in place of the present one, if any; what that has cost is part of the same move."""
        lost_ms = 0 if self.preparing is None else self.preparing.slowdown_ms
        order = order_copy(step.record, target, step.turn, step.settings)
        self.preparing = Preparation(partitions=target, since=step.now, order=order, slowdown_ms=lost_ms)

    def _copy_again(self, step: Step) -> None:
        """Order the same copy once more: whether it is under way is not known."""
        assert self.preparing is not None
        if step.record.moves.moved:
            self._drop_copy(step, _Running(step, self).choice)
        else:
            step.report("rescaled_again", before=step.record.partitions, after=self.preparing.partitions)
            self._copy(self.preparing.partitions, step)

    def _keep_copying(self, step: Step, choice: Choice) -> None:
        """Copy to the count that suits now, or drop the copy."""
        assert self.preparing is not None
        if choice.way != "move" or step.record.moves.moved:
            self._drop_copy(step, choice)
        elif choice.partitions != self.preparing.partitions:
            assert choice.partitions is not None
            step.report_choice(choice, reason="rescale_changed", copies=True)
            self._copy(choice.partitions, step)

    def _drop_copy(self, step: Step, choice: Choice) -> None:
        step.report("rescale_called_off", before=step.record.partitions)
        drop_copy(step.record, step.turn, step.settings)
        self.preparing = self.moving_until = None
        self.batches = 0  # the running micro-batch has run beside the copy
        self.manager.withdraw()
        self._say(step, choice, aloud=False)

    def _answered(self, step: Step) -> Preparation | None:
        """Return the copy whose outcome the event is, None for all other events."""
        if step.order is None or step.order.kind != "prepare":
            return None
        assert self.preparing is not None
        assert self.preparing.order == step.order.action
        return self.preparing

    def _lose_patience(self, step: Step) -> None:
        """Let others begin: how long the copy takes is not known."""
        assert self.preparing is not None
        self.moving_until = None
        step.report_unfinished(self.preparing.partitions)

    # The wait for a move, and what is reported of it

    def say_who_comes_first(self, event: inner.MoveQueued, step: Step) -> None:
        """Report that others come first."""
        self._say(step, _Running(step, self).choice, aloud=True)

    def _rescale(self, step: Step, choice: Choice) -> None:
        """Queue the rescale; the limit on moves is checked once all queries have processed the event."""
        assert choice.way == "move"
        step.open_rescale("load_changed")
        if step.settings.hands_off:
            if not self._is_advised(choice, step):
                step.report_choice(choice)
                step.record.told.advised = (choice.before, choice.after, step.slots)
            step.lift_hold(choice)
            step.close_rescale("no_resources_or_parallelisms_change")
            self.manager = step.new_executing_manager()
        else:
            self.overdue_at = None
            self.queued = step.candidate(choice, since=step.now)

    def _stay_queued(self, step: Step, choice: Choice) -> None:
        """Keep the place in the queue with the count that suits now, or leave the queue."""
        assert self.queued is not None
        if choice.way == "move":
            self.queued = step.candidate(choice, since=self.queued.since)
            if self.candidate(step.record) is None:
                self._say(step, choice, aloud=True)
        else:
            self.queued = None
            self.manager.withdraw()
            self._say(step, choice, aloud=True)

    def _is_advised(self, choice: Choice, step: Step) -> bool:
        return step.record.told.advised == (choice.before, choice.after, step.slots)

    def _say(self, step: Step, choice: Choice, *, aloud: bool) -> None:
        """Report what holds the query back; unless `aloud`, only while a rescale is intended."""
        manager = self.manager
        if manager.phase == "Idling":
            step.close_rescale("no_resources_or_parallelisms_change")
        self._plan_growth(step, choice)
        if choice.way == "move" and self._is_advised(choice, step):
            step.lift_hold(choice)
        elif choice.way == "move":
            reason = {"Cooldown": "cooldown", "Stabilizing": "stabilizing"}.get(
                manager.phase, "awaiting_batch" if self.lost_at is None else "recovering"
            )
            if self.candidate(step.record) is not None:
                reason = "rescale_queued"
            step.report_hold(choice, reason=reason, until=manager.waits_until)
        elif aloud:
            step.report_hold(choice, until=self.overdue_at)
        else:
            step.lift_hold(choice)

    def _plan_growth(self, step: Step, choice: Choice) -> None:
        """Note when growth that does not pay is carried out anyway."""
        limit_ms = step.settings.scaling_interval_max_ms
        self.overdue_at = None
        held = choice.way == "nothing" and not self.is_overdue(step)
        if limit_ms is not None and held and step.choose_running(overdue=True).way == "move":
            self.overdue_at = self.manager.created + limit_ms

    def validate(self, record: QueryRecord) -> None:
        """Check the manager, and that only changes in place and copies are ordered. Raises AssertionError."""
        self.manager.validate()
        assert self.queued is None or self.preparing is None
        awaits_move = self.queued is not None or self.preparing is not None
        assert (self.manager.phase == "Transitioning") == awaits_move
        copies = [order.action for order in record.orders.pending.values() if order.kind == "prepare"]
        assert copies == ([] if self.preparing is None else [self.preparing.order])
        assert self.moving_until is None or self.preparing is not None
        if self.preparing is not None:
            assert self.preparing.partitions != record.partitions
            assert not record.moves.moved
        if awaits_move:
            assert self.overdue_at is None
            assert record.history.open_record is not None
        assert record.run_state == "running"
        assert record.target is None or not record.facts.stateful

    reactions: ClassVar[Reactions] = {
        **QueryState.reactions,
        ev.QueryStarted: take_over_the_count,
        ev.QueryProgress: measure_and_decide,
        ev.QueryFailed: count_and_restart_or_fail,
        ev.SavepointRequested: take_it_or_stop_with_it,
        ev.ActionDone: switch_over_or_take_over_the_count,
        ev.ActionFailed: move_in_a_pause_or_close_the_record,
        inner.Recovered: order_again,
        inner.SlotsChanged: follow_the_slots,
        inner.BoundsChanged: follow_the_bounds,
        inner.SettingsChanged: wait_as_long_as_they_say,
        inner.MoveGranted: move_the_state,
        inner.MoveQueued: say_who_comes_first,
    }


@define
class _Running:
    """Answers the manager for a running query, as of one event: the count is chosen at most once."""

    step: Step
    state: Executing
    _choice: Choice | None = None

    @property
    def choice(self) -> Choice:
        if self._choice is None:
            self._choice = self.step.choose_running(overdue=self.state.is_overdue(self.step))
        return self._choice

    def sufficient(self) -> bool:
        if self.state.lost_at is not None or (self._is_close and self.step.record.moves.moved):
            return False
        return self.choice.way == "move"

    @property
    def _is_close(self) -> bool:
        # Resources may settle before a micro-batch is committed with the new count; a rescale waits for that
        # batch.
        return self.state.manager.phase in ("Stabilizing", "Stabilized")

    def desired(self) -> bool:
        return self.step.share.content and self.sufficient()
