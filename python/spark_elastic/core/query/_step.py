"""One event's way through one query's machine: the world as a state sees it, and what it can do.

Guards around every transition: only along the table, never two in one reaction, and a state is entered
only after the reaction that led to it is over. What each method is for is said where states see it, in
`context.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from attrs import define, field

from spark_elastic.core import reasons
from spark_elastic.core.actions import (
    Action,
    CancelQuery,
    FailQuery,
    HoldQuery,
    SetParallelism,
    StartQuery,
    StopQuery,
    TakeSavepoint,
)
from spark_elastic.core.events import (
    Event,
    Failure,
    QueryProgress,
    QueryStarted,
    QueryTerminated,
    SavepointTaken,
)
from spark_elastic.core.failures.judge import Judgement, judge
from spark_elastic.core.gain import fit
from spark_elastic.core.history import Cause, TerminatedReason
from spark_elastic.core.parallelism import (
    HORIZON_MS,
    RESTART_COST_MS,
    Choice,
    Situation,
    choose_running,
    choose_start,
    makes_rescalable,
)
from spark_elastic.core.query.canceling import Canceling
from spark_elastic.core.query.creating_execution_graph import CreatingExecutionGraph
from spark_elastic.core.query.executing import Executing
from spark_elastic.core.query.failing import Failing
from spark_elastic.core.query.finished import Finished
from spark_elastic.core.query.record import (
    EXCEPTIONS_KEPT,
    SAVEPOINTS_KEPT,
    Order,
    OrderKind,
    Record,
    RunFailure,
    Savepoint,
)
from spark_elastic.core.query.restarting import Restarting
from spark_elastic.core.query.state import State
from spark_elastic.core.query.stop_with_savepoint import StopWithSavepoint
from spark_elastic.core.query.transition_manager import Resources, TransitionManager
from spark_elastic.core.query.transitions import TRANSITIONS, IllegalTransitionError
from spark_elastic.core.query.waiting_for_resources import WaitingForResources
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.turn import Number, Turn

if TYPE_CHECKING:
    from spark_elastic.core.query.machine import QueryMachine

_MOST_STEPS = 20
MOST_ORDERS = 8
"""Orders of one query whose outcome is waited for."""


@define
class _Submission:
    """Answers the manager for a query that waits for its start."""

    slots: int
    needed: int
    most: int

    def sufficient(self) -> bool:
        return self.slots >= self.needed

    def desired(self) -> bool:
        return self.slots >= self.most


@define
class Step:
    """One event's way through one machine: the context of its states."""

    machine: QueryMachine
    turn: Turn
    order: Order | None = None
    _entering: bool = field(default=False, init=False)

    # How a step runs

    def run(self, react: Callable[[Step], None]) -> None:
        """Let the state react, then enter whatever state that leads to."""
        react(self)
        for _ in range(_MOST_STEPS):
            if not self._entering:
                return
            self._entering = False
            self.machine.state.enter(self)
        raise IllegalTransitionError(f"no end of transitions, now in {self.machine.state.name}")

    def catch_up(self) -> None:
        """Do what is due by now."""
        for _ in range(_MOST_STEPS):
            due = self.machine.state.due
            if due is None or due > self.now:
                return
            self.run(self.machine.state.due_reached)
        raise IllegalTransitionError(f"{self.machine.state.name} stays due")

    def _go(self, state: State) -> None:
        old = self.machine.state
        if self._entering:
            raise IllegalTransitionError(f"{old.name} to {state.name} within another transition")
        if state.name not in TRANSITIONS[old.name]:
            raise IllegalTransitionError(f"{old.name} to {state.name} is not in the table")
        self.machine.state = state
        self._entering = True
        self.record.history.entered(state.name, self.now)

    # What a state may look at

    @property
    def now(self) -> int:
        return self.turn.now

    @property
    def record(self) -> Record:
        return self.machine.record

    @property
    def settings(self) -> CoreSettings:
        return self.turn.settings

    @property
    def slots(self) -> int:
        return self.turn.slots

    @property
    def slots_before(self) -> int:
        return self.turn.slots_before

    @property
    def needed_slots(self) -> int:
        return self.machine.requirements.needed

    @property
    def desired_slots(self) -> int:
        return self.machine.requirements.desired

    @property
    def paused_ms(self) -> int | None:
        since = self.record.paused_since
        return None if since is None else self.now - since

    @property
    def may_start(self) -> bool:
        # Reactive mode leaves it to Spark to wait for executors.
        untouched = self.settings.advise_only or self.settings.mode == "reactive"
        return untouched or self.slots >= self.needed_slots

    # Decide

    def judge(self, failure: Failure) -> Judgement:
        record = self.record
        judgement = judge(failure, at=self.now, strategy=record.strategy, poison=record.poison)
        record.gate = "failed"
        record.recovering = True
        record.target = None
        record.paused_since = None
        self._give_up_all()
        entry = RunFailure(at=self.now, failure=failure, reason=judgement.reason)
        record.exceptions = (entry, *record.exceptions)[:EXCEPTIONS_KEPT]
        if judgement.backoff_ms is not None:
            self.open_rescale("recoverable_failover")
        self.report(
            judgement.reason,
            before=record.partitions,
            numbers={
                "error": failure.error,
                "offsets": failure.offsets,
                "tries": record.poison.times,
                "backoff_ms": judgement.backoff_ms or 0,
            },
        )
        return judgement

    def choose_start(self) -> Choice:
        return choose_start(self._situation(self.record.partitions, overdue=False))

    def choose_running(self, *, overdue: bool) -> Choice:
        # What was ordered in place will be in force: deciding on the old count would order it again.
        return choose_running(self._situation(self.record.target or self.record.partitions, overdue=overdue))

    def _situation(self, partitions: int | None, *, overdue: bool) -> Situation:
        record = self.record
        since = self.now - HORIZON_MS
        return Situation(
            facts=record.facts,
            provider=record.provider,
            checkpoint_format=record.checkpoint_format,
            partitions=partitions,
            slots=self.slots,
            requirements=self.machine.requirements,
            model=fit(record.measurements, record.provider),
            seen_slots=record.measurements.slots,
            settings=self.settings,
            restart_cost_ms=RESTART_COST_MS if record.restart_cost_ms is None else record.restart_cost_ms,
            restarts=sum(at > since for at in record.restarts) if record.restarts else 0,
            pending=record.facts.pending and record.gate == "held",
            recovering=record.recovering,
            failed_target=record.failed_target,
            overdue=overdue,
        )

    def submission_resources(self) -> Resources:
        needed = 0 if self.settings.advise_only else self.needed_slots
        return _Submission(slots=self.slots, needed=needed, most=self.desired_slots)

    def new_executing_manager(self) -> TransitionManager:
        settings = self.settings
        delay_ms = settings.max_delay_ms
        if delay_ms is None:
            # So many micro-batches may fail, the next one is waited for.
            delay_ms = (settings.max_checkpoint_failures + 1) * self.record.facts.trigger_ms
        return TransitionManager(
            created=self.now,
            cooldown_ms=settings.cooldown_ms,
            stabilization_ms=settings.executing_stabilization_ms,
            max_delay_ms=delay_ms,
        )

    # Say

    def report(
        self,
        reason: str,
        *,
        before: int | None = None,
        after: int | None = None,
        numbers: Mapping[str, Number] | None = None,
    ) -> None:
        shown = Choice(way="nothing", reason=reason, before=before, after=after, numbers=numbers or {})
        self._report(shown, reason, None)

    def report_choice(self, choice: Choice, *, reason: str | None = None, until: int | None = None) -> None:
        self._report(choice, reason or choice.reason, until)

    def report_hold(self, choice: Choice, *, reason: str | None = None, until: int | None = None) -> None:
        hold = (reason or choice.reason, choice.before, choice.after, self.slots, until)
        if hold != self.record.last_hold:
            self.report_choice(choice, reason=reason, until=until)
            self.record.last_hold = hold

    def report_failure(self, order: Order, error: str) -> None:
        """Note that an order could not be carried out; its target is left alone until the slots change."""
        record = self.record
        if order.kind == "stop" and record.is_stopping:
            return  # it was a repeated one, and the first is still carried out
        if order.kind in ("start", "set"):
            record.failed_target = order.target
        if order.target is not None and record.target == order.target:
            record.target = None
        code = {
            "start": "start_failed",
            "stop": "savepoint_failed" if order.target is None else "stop_failed",
            "set": "in_place_failed",
            "end": "end_failed",
            "savepoint": "savepoint_failed",
        }[order.kind]
        self.report(code, before=record.partitions, after=order.target, numbers={"error": error})

    def report_unexpected(self, event: Event) -> None:
        """Note, once, that an event made no sense."""
        name, state = type(event).__name__, self.machine.state.name
        key = f"unexpected {name} {state}"
        if key not in self.record.said:
            self.record.said.add(key)
            self.report("unexpected", numbers={"event": name, "state": state})

    def _report(self, choice: Choice, reason: str, until: int | None) -> None:
        record = self.record
        entry = reasons.REASONS[reason]
        if entry.once:
            if reason in record.said:
                return
            record.said.add(reason)
        numbers: Mapping[str, Number] = {"slots": self.slots, **choice.numbers}
        waits = {
            "cooldown_ms": self.settings.cooldown_ms,
            "stabilization_ms": self.settings.executing_stabilization_ms,
        }
        message = reasons.message(
            reason, **{**waits, **numbers, "before": choice.before, "after": choice.after}
        )
        if self.settings.advise_only and entry.kind in ("start", "rescale_in_place", "rescale_restart"):
            message = reasons.fill(reasons.ADVICE, message=message)
        record.last_decision = self.turn.publish(
            reason,
            message,
            query=record.facts.query,
            before=choice.before,
            after=choice.after,
            numbers=numbers,
            alternatives=tuple(
                reasons.fill(reasons.ALTERNATIVE, partitions=count, batch_ms=batch_ms)
                for count, batch_ms in choice.alternatives
            ),
            until=until,
        )
        record.last_hold = None

    # Act

    def start(self, choice: Choice) -> None:
        record = self.record
        advise_only = self.settings.advise_only
        # A run that failed before its first batch has left nothing of this in the checkpoint.
        fresh = record.gate == "held" or (record.began_rescalable and record.last_progress is None)
        rescalable = fresh and makes_rescalable(record.facts, self.settings)
        if choice.partitions is not None and record.facts.explicit_partitions is not None:
            self._say_how_explicit_counts()
        partitions = None if advise_only else choice.partitions
        action = StartQuery(
            id=self.turn.next_action(),
            cause=self.turn.cause,
            query=record.facts.query,
            partitions=partitions,
            repartition=choice.repartition and not advise_only,
            rescalable=rescalable and not advise_only,
        )
        record.target = partitions
        record.becomes_rescalable = action.rescalable
        self._ordered("start", action, partitions)

    def _say_how_explicit_counts(self) -> None:
        explicit = self.record.facts.explicit_partitions
        if explicit is not None and self.settings.explicit_parallelism == "ignore":
            self.report("explicit_ignored", numbers={"explicit": explicit})

    def hold(self, reason: str, *, until: int | None, numbers: Mapping[str, Number]) -> None:
        record = self.record
        choice = Choice(way="nothing", reason=reason, before=record.partitions, numbers=numbers)
        said = record.last_decision
        self.report_hold(choice, until=until)
        if record.gate != "running" and record.last_decision is not None and record.last_decision is not said:
            self.turn.emit(
                HoldQuery(
                    id=self.turn.next_action(),
                    cause=self.turn.cause,
                    query=record.facts.query,
                    message=record.last_decision.message,
                )
            )

    def stop(self, target: int | None) -> None:
        if target is not None:
            self.record.target = target
            self.record.paused_since = self.now
        action = StopQuery(
            id=self.turn.next_action(),
            cause=self.turn.cause,
            query=self.record.facts.query,
            grace_ms=self._grace_ms(),
        )
        self._ordered("stop", action, target)

    def _grace_ms(self) -> int:
        """Give a query with long micro-batches the time to end one.

        Interrupted, it leaves a batch that has to run again before its state can be re-partitioned.
        """
        last = self.record.last_progress
        return max(self.settings.grace_ms, 0 if last is None else 2 * last.duration_ms)

    def end_failed(self, message: str | None) -> None:
        self._ordered(
            "end",
            FailQuery(
                id=self.turn.next_action(),
                cause=self.turn.cause,
                query=self.record.facts.query,
                message=message,
            ),
            None,
        )

    def stop_for_good(self) -> None:
        action = CancelQuery(id=self.turn.next_action(), cause=self.turn.cause, query=self.record.facts.query)
        self._ordered("end", action, None)

    def take_savepoint(self, target: str | None) -> str | None:
        folder = self._savepoint_folder(target)
        if folder is None:
            return None
        query = self.record.facts.query
        self.report("savepoint", before=self.record.partitions, numbers={"target": folder})
        action = TakeSavepoint(id=self.turn.next_action(), cause=self.turn.cause, query=query, target=folder)
        self._ordered("savepoint", action, None)
        return action.id

    def _savepoint_folder(self, target: str | None) -> str | None:
        folder = target or self.settings.savepoint_dir
        if folder is None:
            self.report("savepoint_nowhere", before=self.record.partitions)
        return folder

    def refuse_savepoint(self) -> None:
        self.report("savepoint_refused", numbers={"state": self.machine.state.name})

    def set_parallelism(self, choice: Choice) -> None:
        if self.settings.advise_only:
            self.close_rescale("no_resources_or_parallelisms_change")
            return
        assert choice.partitions is not None
        self.record.target = choice.partitions
        action = SetParallelism(
            id=self.turn.next_action(),
            cause=self.turn.cause,
            query=self.record.facts.query,
            partitions=choice.partitions,
        )
        self._ordered("set", action, choice.partitions)

    def _ordered(self, kind: OrderKind, action: Action, target: int | None) -> None:
        orders = self.record.orders
        orders[action.id] = Order(action=action.id, kind=kind, target=target, at=self.now)
        # An outcome can get lost with the process that owed it: the oldest order is given up.
        if len(orders) > MOST_ORDERS:
            self._give_up(next(iter(orders)))
        self.turn.emit(action)

    def set_orders_lost(self, partitions: int | None) -> None:
        """Take `partitions` for what is in force, whatever was ordered; None where that is not known."""
        record = self.record
        lost = self._give_up_all("set")
        if not lost and partitions is not None and record.gate == "running" and not record.facts.stateful:
            record.partitions = partitions  # whoever knew another count had not heard of a change in place
        for order in lost:
            if record.target == order.target:
                record.target = None
            if partitions == order.target:
                record.partitions = partitions
                self.close_rescale("succeeded")

    def _give_up_all(self, *kinds: OrderKind) -> tuple[Order, ...]:
        """Give up the orders of these kinds, of any kind if none is named; return them."""
        every = self.record.orders.values()
        orders = tuple(order for order in every if not kinds or order.kind in kinds)
        for order in orders:
            self._give_up(order.action)
        return orders

    def _give_up(self, order: str) -> None:
        del self.record.orders[order]
        self.turn.give_up(order)

    # Note

    def saved(self, event: SavepointTaken) -> None:
        """Take in that a savepoint is complete, whoever has waited for it."""
        record = self.record
        taken = Savepoint(at=self.now, path=event.path, batch=event.batch, bytes=event.bytes)
        record.savepoints = (taken, *record.savepoints)[:SAVEPOINTS_KEPT]
        numbers: Mapping[str, Number] = {"path": event.path, "batch": event.batch, "bytes": event.bytes}
        self.report("savepoint_taken", before=record.partitions, numbers=numbers)

    def started(self, event: QueryStarted) -> None:
        record = self.record
        if record.becomes_rescalable:
            record.becomes_rescalable = False
            record.began_rescalable = True
            record.note_rescalable()
        if record.gate == "stopped":
            if self.paused_ms is not None:
                record.restart_cost_ms = self.paused_ms
            since = self.now - HORIZON_MS
            record.restarts = (*(at for at in record.restarts if at > since), self.now)
        self._give_up_all("start", "stop")
        record.run = event.run
        record.gate = "running"
        record.recovering = False
        record.partitions = event.partitions or record.partitions or record.facts.session_partitions
        record.target = None
        record.paused_since = None

    def measured(self, event: QueryProgress, *, warm: bool) -> None:
        record = self.record
        record.last_progress = event
        if event.partitions < 1:
            return  # The count is not known to the sender, so there is nothing to learn about it.
        if not record.facts.stateful:
            return  # What is changed in place follows the slots alone: nothing is computed from its batches.
        record.partitions = event.partitions
        if warm and self.slots > 0:
            record.measurements.add(
                partitions=event.partitions,
                slots=self.slots,
                duration_ms=event.duration_ms,
                rows=event.input_rows,
            )

    def ran_until_now(self) -> None:
        self.record.paused_since = self.now
        self.record.history.ran_until(self.now)

    def open_rescale(self, cause: Cause) -> None:
        first = cause == "initial_schedule"
        self.record.history.open(
            cause,
            state=self.machine.state.name,
            at=self.now,
            slots=None if first else self.slots_before,
            partitions=None if first else self.record.partitions,
        )

    def open_rescale_for_bounds(self) -> None:
        # A query that has not run yet is still to be scheduled for the first time.
        self.open_rescale("initial_schedule" if self.record.gate == "held" else "update_requirement")

    def close_rescale(self, reason: TerminatedReason) -> None:
        self.record.history.close(reason, at=self.now, slots=self.slots, partitions=self.record.partitions)

    # Go to

    def wait_for_resources(self) -> None:
        # Waiting for resources is not what a restart costs.
        self.record.paused_since = None
        settings = self.settings
        wait_ms = settings.resource_wait_ms
        manager = TransitionManager(
            created=self.now,
            cooldown_ms=0,
            # Who only advises delays no start.
            stabilization_ms=0 if settings.advise_only else settings.submission_stabilization_ms,
            max_delay_ms=0,
        )
        deadline = None if wait_ms < 0 else self.now + wait_ms
        self._go(WaitingForResources(entered=self.now, deadline=deadline, manager=manager))

    def create_execution_graph(self, *, waited_ms: int = 0, planned: int | None = None) -> None:
        self._go(CreatingExecutionGraph(entered=self.now, waited_ms=waited_ms, planned=planned))

    def execute(self) -> None:
        self._go(Executing(entered=self.now, manager=self.new_executing_manager()))

    def restart(self, target: int) -> None:
        self.record.restarted += 1
        self.record.rescaled += 1
        self._go(Restarting(entered=self.now, target=target))

    def run_failed(self, failure: Failure, *, savepoint: str | None = None) -> None:
        judgement = self.judge(failure)
        if judgement.backoff_ms is None:
            message = None if savepoint is None else reasons.fill(reasons.SAVED_BEFORE, path=savepoint)
            self.fail(message)
        else:
            self.record.restarted += 1
            end = self.now + judgement.backoff_ms
            self._go(Restarting(entered=self.now, target=None, backoff_end=end))

    def fail(self, message: str | None = None) -> None:
        self._go(Failing(entered=self.now, message=message))

    def fail_without_resources(self, waited_ms: int) -> None:
        numbers = {"needed": self.needed_slots, "waited_ms": waited_ms}
        self.report("failure_no_resources", before=self.record.partitions, numbers=numbers)
        said = self.record.last_decision
        assert said is not None
        self.fail(said.message)

    def stop_with_savepoint(self, target: str | None, by: str) -> None:
        folder = self._savepoint_folder(target)
        if folder is not None:
            numbers = {"target": folder, "by": by}
            self.report("stop_with_savepoint", before=self.record.partitions, numbers=numbers)
            self._go(StopWithSavepoint(entered=self.now, target=folder))

    def cancel(self, by: str) -> None:
        self.report("canceling", before=self.record.partitions, numbers={"by": by})
        self._go(Canceling(entered=self.now))

    def finish(self, event: QueryTerminated) -> None:
        state = self.machine.state
        if isinstance(state, Canceling):
            self.end("canceled", "job_canceled")
        elif isinstance(state, StopWithSavepoint) and state.path is not None:
            self.end("stopped_with_savepoint", "job_finished", {"path": state.path})
        elif event.error is None:
            self.end("finished", "job_finished")
        else:
            self.end("query_failed", "job_failed", {"error": event.error})

    def end(
        self, reason: str, terminated: TerminatedReason, numbers: Mapping[str, Number] | None = None
    ) -> None:
        """Go to Finished and let go of everything."""
        record = self.record
        self.report(reason, before=record.partitions, numbers=numbers)
        self.close_rescale(terminated)
        self._give_up_all()
        record.target = None
        self._go(Finished(entered=self.now))
