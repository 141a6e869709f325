"""Executing: the query runs. Here it is decided whether and when it is rescaled.

Decide, recheck and act are three moments: a change of slots or load makes the manager wait, its end (a
later event) asks again, and only then is something ordered. What can be changed in place costs nothing
and waits for nothing.
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
    QuerySubmitted,
    QueryTerminated,
    SavepointRequested,
    SavepointTaken,
)
from spark_elastic.core.history import Cause
from spark_elastic.core.parallelism import Choice
from spark_elastic.core.query.context import Context
from spark_elastic.core.query.state import State
from spark_elastic.core.query.transition_manager import TransitionManager
from spark_elastic.core.query.transitions import EXECUTING


@define(kw_only=True)
class Executing(State):
    """A running query.

    `batches` counts since it was started, `overdue_at` is when too small an increase is carried out all
    the same. `lost_at` is when slots were last lost, None once a batch that began later is committed: until
    then Spark is busy to make up for what was lost, and who is restarted now waits for that twice.
    """

    name: ClassVar[str] = EXECUTING
    handles: ClassVar[frozenset[type[Event]]] = frozenset(
        {
            CancelRequested,
            QueryStarted,
            QueryProgress,
            QueryFailed,
            QueryTerminated,
            ActionDone,
            ActionFailed,
        }
    )
    ignores: ClassVar[Mapping[type[Event], str]] = {
        SavepointTaken: "it is kept with the query",
        QuerySubmitted: "it was answered, or the query would not run",
        QueryIdle: "a query without data has no batch whose end could be used",
    }

    manager: TransitionManager
    batches: int = 0
    overdue_at: int | None = None
    lost_at: int | None = None

    @property
    def due(self) -> int | None:
        """The end of the manager's present phase, or of the patience with small increases."""
        due, overdue_at = self.manager.due, self.overdue_at
        return due if overdue_at is None else overdue_at if due is None else min(due, overdue_at)

    def enter(self, context: Context) -> None:
        """Look once at what has changed while the query was being started."""
        self._reconsider(context, cause=None)

    def resources_changed(self, context: Context) -> None:
        """Follow the slots."""
        change = context.slots - context.slots_before
        self.slots_changed(change, context.now)
        self._reconsider(context, cause="new_resources" if change > 0 else "lost_resources")

    def slots_changed(self, change: int, at: int) -> None:
        """Note by how much; whether there is anything to decide is another question."""
        if change < 0:
            self.lost_at = at

    def found_again(self, info: QueryInfo, context: Context) -> None:
        """Change in place again what is not in force."""
        choice = _Running(context, self).choice
        if choice.way == "in_place":
            self._change_in_place(choice, context)

    def requirements_changed(self, context: Context) -> None:
        """Follow the bounds."""
        self._reconsider(context, cause="update_requirement")

    def due_reached(self, context: Context) -> None:
        """Go on to the next phase; what is due for its size alone is a change."""
        overdue = self.overdue_at is not None and context.now >= self.overdue_at
        if overdue:
            self.overdue_at = None
        now = _Running(context, self)
        if self.manager.advance(context.now, now) or (overdue and self.manager.change(context.now, now)):
            self._rescale(context, now.choice)
        else:
            self._say(context, now.choice, aloud=False)

    def savepoint_requested(self, event: SavepointRequested, context: Context) -> None:
        """Take it while the query goes on, or stop with it."""
        if event.stop:
            context.stop_with_savepoint(event.target, event.by)
        else:
            context.take_savepoint(event.target)

    def on(self, event: Event, context: Context) -> None:
        """Measure, and use the end of each micro-batch."""
        match event:
            case QueryProgress() if event.run == context.record.run:
                self._batch_committed(event, context)
            case QueryStarted():
                context.started(event)
                self.batches = 0
            case CancelRequested():
                context.cancel(event.by)
            case QueryFailed():
                context.run_failed(event.failure)
            case QueryTerminated():
                context.finish(event)
            case ActionDone():
                self._done(context)
            case ActionFailed():
                self._failed(context)

    def is_overdue(self, context: Context) -> bool:
        """Say whether the query has run so long that even a small increase is to be carried out."""
        limit_ms = context.settings.scaling_interval_max_ms
        return limit_ms is not None and context.now >= self.entered + limit_ms

    def _reconsider(self, context: Context, cause: Cause | None) -> None:
        now = _Running(context, self)
        choice = now.choice
        if cause is not None:
            context.open_rescale(cause)
        if choice.way == "in_place":
            self._change_in_place(choice, context)
        elif self.manager.change(context.now, now):
            self._rescale(context, choice)
        else:
            self._say(context, choice, aloud=cause is not None)

    def _change_in_place(self, choice: Choice, context: Context) -> None:
        context.open_rescale("new_resources")
        context.report_choice(choice)
        context.set_parallelism(choice)

    def _batch_committed(self, event: QueryProgress, context: Context) -> None:
        # The first batch of a run loads classes and state: it says nothing about the next ones.
        context.measured(event, warm=self.batches > 0)
        context.record.poison.progressed()
        self.batches += 1
        if self.lost_at is not None and event.started >= self.lost_at:
            self.lost_at = None
        if not context.record.facts.stateful:
            return
        now = _Running(context, self)
        phase = self.manager.phase
        if (phase == "Idling" and self.manager.change(context.now, now)) or self.manager.trigger(
            context.now, now
        ):
            self._rescale(context, now.choice)
        elif self.manager.phase != phase:
            if self.manager.phase != "Idling":
                context.open_rescale("load_changed")
            self._say(context, now.choice, aloud=False)

    def _done(self, context: Context) -> None:
        order = context.order
        if order is not None and order.kind == "set":
            context.record.partitions = order.target
            if context.record.target == order.target:
                context.record.target = None
            context.close_rescale("succeeded")

    def _failed(self, context: Context) -> None:
        if context.order is not None and context.order.kind == "set":
            context.close_rescale("exception_occurred")

    def _rescale(self, context: Context, choice: Choice) -> None:
        assert choice.way == "restart"
        assert choice.partitions is not None
        context.open_rescale("load_changed")
        if context.settings.advise_only:
            if not self._is_advised(choice, context):
                context.report_choice(choice)
                context.record.advised = (choice.before, choice.after, context.slots)
            context.close_rescale("no_resources_or_parallelisms_change")
            self.manager = context.new_executing_manager()
        else:
            context.report_choice(choice)
            context.restart(choice.partitions)

    def _is_advised(self, choice: Choice, context: Context) -> bool:
        return context.record.advised == (choice.before, choice.after, context.slots)

    def _say(self, context: Context, choice: Choice, *, aloud: bool) -> None:
        """Say what holds the query; unless `aloud`, only while a rescale is meant."""
        manager = self.manager
        if manager.phase == "Idling":
            context.close_rescale("no_resources_or_parallelisms_change")
        limit_ms = context.settings.scaling_interval_max_ms
        self.overdue_at = None
        if limit_ms is not None and choice.reason == "increase_too_small":
            self.overdue_at = self.entered + limit_ms
        if choice.way == "restart" and self._is_advised(choice, context):
            return
        if choice.way == "restart":
            reason = {"Cooldown": "cooldown", "Stabilizing": "stabilizing"}.get(
                manager.phase, "awaiting_batch" if self.lost_at is None else "recovering"
            )
            context.report_hold(choice, reason=reason, until=manager.waits_until)
        elif aloud:
            context.report_hold(choice, until=self.overdue_at)

    def validate(self) -> None:
        """Check the manager. Raises AssertionError."""
        self.manager.validate()
        assert self.manager.phase != "Transitioning"


@define
class _Running:
    """Answers the manager for a running query, as it is at one event: the count is chosen at most once."""

    context: Context
    state: Executing
    _choice: Choice | None = None

    @property
    def choice(self) -> Choice:
        if self._choice is None:
            self._choice = self.context.choose_running(overdue=self.state.is_overdue(self.context))
        return self._choice

    def sufficient(self) -> bool:
        return self.state.lost_at is None and self.choice.way == "restart"

    def desired(self) -> bool:
        return self.context.slots >= self.context.desired_slots and self.sufficient()
