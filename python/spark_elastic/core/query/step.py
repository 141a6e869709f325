"""The path of one event through one query: the world as its states see it, and the transitions.

Guards around every transition: only along the table, never two in one reaction, and a state is entered only
after the reaction that led to it has ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, evolve, field

from spark_elastic.core import events as ev
from spark_elastic.core.actions import (
    Action,
    CancelQuery,
    DropOriginal,
    FailQuery,
    HoldQuery,
    Rescale,
    StartQuery,
    TakeSavepoint,
)
from spark_elastic.core.bounds.shares import Share
from spark_elastic.core.events import Failure, QueryFacts, SavepointRequested
from spark_elastic.core.failures.judge import Judgement, StoreOf, judge, summary
from spark_elastic.core.failures.strategy import RestartStrategy, new_strategy
from spark_elastic.core.query.internal_events import QueryInput
from spark_elastic.core.query.preparing import forget_copy, prepares_moves
from spark_elastic.core.query.record import (
    EXCEPTIONS_KEPT,
    SAVEPOINTS_KEPT,
    OrderKind,
    PendingOrder,
    QueryRecord,
    RunFailure,
    Savepoint,
    State,
    keep_text,
)
from spark_elastic.core.query.sources import order_bounds
from spark_elastic.core.reasons import catalogue
from spark_elastic.core.reasons.reason import fill
from spark_elastic.core.rescale.concurrency import PATIENCE_MS, Candidate
from spark_elastic.core.rescale.failed import FailedMove
from spark_elastic.core.rescale.gain import fit
from spark_elastic.core.rescale.history import Cause, TerminatedReason
from spark_elastic.core.rescale.parallelism import choose_running, choose_start
from spark_elastic.core.rescale.preparation import Preparation
from spark_elastic.core.rescale.situation import (
    HORIZON_MS,
    Choice,
    Situation,
    makes_rescalable,
    repartition_obstacle,
)
from spark_elastic.core.rescale.transition_manager import Resources, TransitionManager
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.transitions import (
    CANCELING,
    CREATING_EXECUTION_GRAPH,
    EXECUTING,
    FAILING,
    FINISHED,
    RESTARTING,
    STOP_WITH_SAVEPOINT,
    TRANSITIONS,
    WAITING_FOR_RESOURCES,
    IllegalTransitionError,
)
from spark_elastic.core.turn import Number, Turn

_MOST_STEPS = 20


@define
class Step:
    """The path of one event through one query: everything that a state may inspect, and its means to act.

    `states` are the classes of all states by name. `order` is the order whose outcome the event is, None for
    all other events.
    """

    record: QueryRecord
    turn: Turn
    states: Mapping[str, type[State]]
    order: PendingOrder | None = None
    _entering: bool = field(default=False, init=False)

    # Execution

    def catch_up(self) -> None:
        """Do everything due by now."""
        for _ in range(_MOST_STEPS):
            due = self.record.state.due
            if due is None or due > self.now:
                return
            self.record.state.due_reached(self)
            self._arrive()
        raise IllegalTransitionError(f"{self.record.state.name} stays due")

    def react(self, event: QueryInput) -> None:
        """Apply the reaction from the state's table, and enter the state that it leads to."""
        state = self.record.state
        reaction = state.reactions.get(type(event))
        if reaction is None:
            self.report_unexpected(event)
        elif not isinstance(reaction, str):
            reaction(state, event, self)
            if self._entering:
                self._arrive()

    def _arrive(self) -> None:
        for _ in range(_MOST_STEPS):
            if not self._entering:
                return
            self._entering = False
            self.record.state.enter(self)
        raise IllegalTransitionError(f"no end of transitions, now in {self.record.state.name}")

    def _go(self, name: str, **fields: Any) -> None:
        old = self.record.state
        if self._entering:
            raise IllegalTransitionError(f"{old.name} to {name} within another transition")
        if name not in TRANSITIONS[old.name]:
            raise IllegalTransitionError(f"{old.name} to {name} is not in the table")
        forget_copy(self.record)
        stayed = self.record.stayed_ms
        stayed[old.name] = stayed.get(old.name, 0) + self.now - old.entered
        self.record.state = self.states[name](entered=self.now, **fields)
        self._entering = True
        self.record.history.entered(name, self.now)

    # Transitions

    def wait_for_resources(self) -> None:
        """Go to WaitingForResources."""
        deadline = self.resource_deadline(self.now)
        manager = self.new_submission_manager()
        self._go(WAITING_FOR_RESOURCES, deadline=deadline, manager=manager)

    def create_execution_graph(self, *, waited_ms: int = 0) -> None:
        """Go to CreatingExecutionGraph."""
        self._go(CREATING_EXECUTION_GRAPH, waited_ms=waited_ms)

    def execute(self) -> None:
        """Go to Executing."""
        if self.record.facts.stateful:
            # The rescale has ended, or is off: the state Executing ignores an outcome that arrives later.
            self.give_up("rescale")
            self.record.target = None
        manager, self.record.failures.manager = self.record.failures.manager, None
        self._go(EXECUTING, manager=manager or self.new_executing_manager())

    def move_state(
        self, target: int, *, overdue: bool, until: int | None, copied: Preparation | None = None
    ) -> None:
        """Go to Restarting, for a rescale; others wait for it `until` then, an `overdue` one need not pay."""
        self._go(RESTARTING, target=target, overdue=overdue, moving_until=until, copied=copied)

    def run_failed(self, failure: Failure, *, savepoint: str | None = None) -> None:
        """Go to Restarting with a backoff, or to Failing with an exception that names the `savepoint`."""
        judgement = self.judge(failure)
        if judgement.backoff_ms is None:
            message = None if savepoint is None else fill(catalogue.SAVED_BEFORE, path=savepoint)
            self.fail(message)
        else:
            self.record.failures.restarted += 1
            end = self.now + judgement.backoff_ms
            self._go(RESTARTING, target=None, backoff_end=end)

    def fail(self, message: str | None = None) -> None:
        """Go to Failing; the query ends with the exception of its run, or with one that says `message`."""
        self._go(FAILING, message=message)

    def fail_without_resources(self, waited_ms: int) -> None:
        """Go to Failing; the query ends with an exception that says which resources it has waited for."""
        shortage = self.share.shortage
        assert shortage is not None
        reason = "failure_others_first" if shortage.ahead else "failure_no_resources"
        numbers: Mapping[str, Number] = {
            **shortage.numbers(),
            "waited_ms": waited_ms,
            "wait_ms": self.settings.resource_wait_ms,
            "advice": catalogue.FEWER if self.settings.mode == "adaptive" else catalogue.MORE,
        }
        self.report(reason, before=self.record.partitions, numbers=numbers)
        said = self.record.told.decision
        assert said is not None
        self.fail(said.message)

    def stop_with_savepoint(self, request: SavepointRequested) -> None:
        """Go to StopWithSavepoint, or publish that no folder is given for the savepoint."""
        folder = self._savepoint_folder(request)
        if folder is not None:
            numbers = {"target": folder, "by": request.by}
            self.report("stop_with_savepoint", before=self.record.partitions, numbers=numbers)
            self._go(STOP_WITH_SAVEPOINT, request=evolve(request, target=folder), target=folder)

    def cancel(self, by: str) -> None:
        """Go to Canceling, as requested."""
        self.report("canceling", before=self.record.partitions, numbers={"by": by})
        self._go(CANCELING)

    def end(
        self, reason: str, terminated: TerminatedReason, numbers: Mapping[str, Number] | None = None
    ) -> None:
        """Go to Finished and drop all outstanding orders."""
        record = self.record
        for order in self.give_up():
            if order.kind == "savepoint" and not order.replaced:
                error = "the query has ended before it was complete"
                self.report("savepoint_failed", before=record.partitions, numbers={"error": error})
        self.report(reason, before=record.partitions, numbers=numbers)
        self.close_rescale(terminated)
        record.target = None
        self._go(FINISHED)

    # Known facts

    @property
    def now(self) -> int:
        """The time of the event, epoch ms."""
        return self.turn.now

    @property
    def settings(self) -> CoreSettings:
        """The user's settings, for this query or for all of them."""
        return self.record.settings or self.turn.settings

    @property
    def slots(self) -> int:
        """The current slots that the query can use."""
        return self.share.slots

    @property
    def slots_before(self) -> int:
        """The slots that the query could use before the event."""
        return self.record.shares.known.slots

    @property
    def share(self) -> Share:
        """The query's share of the current slots."""
        return self.record.shares.now

    @property
    def needed_slots(self) -> int:
        """The slots that the query needs to start."""
        return self.record.requirements.needed

    @property
    def rescale_order(self) -> PendingOrder | None:
        """The rescale whose outcome the event is, None for all other events."""
        return self.order if self.order is not None and self.order.kind == "rescale" else None

    # Reports, and records in the history of rescales

    def report(
        self,
        reason: str,
        *,
        before: int | None = None,
        after: int | None = None,
        numbers: Mapping[str, Number] | None = None,
    ) -> None:
        """Publish a decision."""
        shown = Choice(way="nothing", reason=reason, before=before, after=after, numbers=numbers or {})
        self.report_choice(shown)

    def report_choice(
        self, choice: Choice, *, reason: str | None = None, until: int | None = None, copies: bool = False
    ) -> None:
        """Publish a choice as a decision; `reason` replaces its own where it cannot be acted on yet.

        `copies` says that the state is copied before it is moved.
        """
        record, reason = self.record, reason or choice.reason
        entry = catalogue.REASONS[reason]
        if entry.once:
            if reason in record.told.once:
                return
            record.told.once.add(reason)
        numbers: Mapping[str, Number] = {"slots": self.slots, **choice.numbers}
        if self.share.total != self.slots:
            numbers = {**numbers, "total_slots": self.share.total}
        waits = {
            "cooldown_ms": self.settings.cooldown_ms,
            "stabilization_ms": self.settings.executing_stabilization_ms,
            "most": self.settings.max_concurrent_rescales,
        }
        message = catalogue.message(
            reason, **{**waits, **numbers, "before": choice.before, "after": choice.after}
        )
        if entry.kind == "held" and choice.reason == "rescale_pays":
            message = catalogue.expected(message, **numbers)
        message = catalogue.copied_first(message, copies=copies)
        changes = entry.kind in ("start", "rescale_in_place", "rescale_state")
        message = catalogue.advised(message, only=changes and self.turn.settings.advise_only)
        record.told.decision = self.turn.publish(
            reason,
            message,
            query=record.facts.query,
            before=choice.before,
            after=choice.after,
            numbers=numbers,
            alternatives=tuple(
                fill(catalogue.ALTERNATIVE, partitions=count, batch_ms=batch_ms)
                for count, batch_ms in choice.alternatives
            ),
            until=until,
        )
        record.told.hold = None

    def report_hold(self, choice: Choice, *, reason: str | None = None, until: int | None = None) -> None:
        """Publish that nothing is done, unless the last report was the same."""
        hold = (reason or choice.reason, choice.before, choice.after, self.slots, until)
        if hold != self.record.told.hold:
            self.report_choice(choice, reason=reason, until=until)
            self.record.told.hold = hold
        self.record.told.lifted = False

    def lift_hold(self, choice: Choice) -> None:
        """Note that the reported hold is over, unless the choice has the same reason."""
        told = self.record.told
        told.lifted = told.hold is not None and told.hold[0] != choice.reason

    def report_share(self) -> None:
        """Publish a new division of the slots if the query gets less than it could use."""
        share, before = self.share, self.record.shares.known
        if not share.suffices or share.content or share.slots == share.total:
            return
        if self.settings.mode == "off":
            return
        if before.suffices and not before.content and before.slots == share.slots:
            return
        values: Mapping[str, Number] = {
            "slots": share.slots,
            "total_slots": share.total,
            "reserved": share.reserved,
            "weight": _plain(share.weight),
            "weights": _plain(share.weights),
        }
        # Separate from the query's own activity, whose last report stays valid.
        message = catalogue.message("slots_shared", **values)
        self.turn.publish(
            "slots_shared",
            message,
            query=self.record.facts.query,
            before=before.slots if before.total else None,
            after=share.slots,
            numbers=values,
        )

    def report_unexpected(self, event: object) -> None:
        """Note, once, that an event was unexpected in this state."""
        name, state = type(event).__name__, self.record.state.name
        key = f"unexpected {name} {state}"
        if key not in self.record.told.once:
            self.record.told.once.add(key)
            self.report("unexpected", numbers={"event": name, "state": state})

    def report_unfinished(self, target: int) -> None:
        """Publish that other queries no longer wait for the move to `target`."""
        numbers = {"patience_ms": PATIENCE_MS}
        self.report("rescale_unfinished", before=self.record.partitions, after=target, numbers=numbers)

    def open_rescale(self, cause: Cause) -> None:
        """Open a record of the history, unless one is open."""
        first = cause == "initial_schedule"
        self.record.history.open(
            cause,
            state=self.record.state.name,
            at=self.now,
            slots=None if first else self.slots_before,
            partitions=None if first else self.record.partitions,
        )

    def open_rescale_for_bounds(self) -> None:
        """Open a record for a start under way whose record the change of bounds has closed."""
        # A query that has not run yet still has its first start ahead.
        self.open_rescale("initial_schedule" if self.record.run_state == "held" else "update_requirement")

    def close_rescale(self, reason: TerminatedReason) -> None:
        """Close the open record of the history, if any."""
        self.record.history.close(reason, at=self.now, slots=self.slots, partitions=self.record.partitions)

    # Decisions

    @property
    def may_start(self) -> bool:
        """Whether the current slots allow a start once the query has waited for the allowed time."""
        # With advice only, or left alone, the query waits for executors as in plain Spark.
        return self.settings.hands_off or self.share.may_start

    def choose_start(self) -> Choice:
        """Choose the count for a start, with the current slots."""
        now = self._situation(self.record.partitions, overdue=False)
        return choose_start(evolve(now, has_room=self.turn.moves.has_room_for(self.record.facts.query)))

    def choose_running(self, *, overdue: bool) -> Choice:
        """Choose what to do about the count while the query runs, with the current slots."""
        # An ordered change in place will be in force: deciding on the old count would order it again.
        return choose_running(self._situation(self.record.target or self.record.partitions, overdue=overdue))

    def choose_again(self, *, overdue: bool) -> Choice:
        """Choose again for a rescale that is ordered and has not completed."""
        return choose_running(self._situation(self.record.partitions, overdue=overdue))

    def candidate(self, choice: Choice, *, since: int) -> Candidate:
        """Describe a move awaited since `since` (epoch ms), for comparison with those of other queries."""
        assert choice.partitions is not None
        assert choice.gain is not None
        return Candidate(
            since=since,
            partitions=choice.partitions,
            into_bounds=choice.is_into_bounds,
            gain_ms=None if self.record.load.measurements.latest is None else choice.gain.net_ms,
        )

    def _situation(self, partitions: int | None, *, overdue: bool) -> Situation:
        record = self.record
        since, progress = self.now - HORIZON_MS, record.load.last_progress
        return Situation(
            facts=record.facts,
            provider=record.checkpoint.provider,
            checkpoint_format=record.checkpoint.format,
            partitions=partitions,
            slots=self.slots,
            reach=min(self.share.reach, record.facts.session_partitions),
            shortage=self.share.shortage,
            requirements=record.requirements,
            model=fit(record.load.measurements, record.checkpoint.provider),
            seen_slots=record.load.measurements.slots,
            settings=self.settings,
            cost=record.moves.next_cost(prepared=prepares_moves(record, self.settings)),
            rescales=sum(at > since for at in record.moves.ended) if record.moves.ended else 0,
            pending=record.facts.pending and record.run_state == "held",
            recovering=record.failures.recovering,
            failed_target=record.moves.failed.to_avoid(self.now),
            overdue=overdue,
            expects_slots=record.shares.lacks_since is not None and record.shares.lacks_since > since,
            behind=progress is not None and (progress.records_behind or 0) > progress.input_rows,
            reading=record.reading(self.settings),
        )

    def submission_resources(self) -> Resources:
        """Return the manager's view of resources for a query that waits to be started."""
        return _Submission(self.share, self.settings.hands_off)

    def resource_deadline(self, since: int) -> int | None:
        """Return when a query fails that has waited for its slots since `since`; None if it never does."""
        wait_ms = self.settings.resource_wait_ms
        return None if wait_ms < 0 else since + wait_ms

    def new_submission_manager(self) -> TransitionManager:
        """Begin the wait for more slots than a start needs."""
        stabilization_ms = self.settings.submission_stabilization_ms
        return TransitionManager(
            created=self.now,
            cooldown_ms=0,
            # Advice alone delays no start.
            stabilization_ms=0 if self.settings.hands_off else stabilization_ms,
            max_delay_ms=0,
        )

    def new_executing_manager(self) -> TransitionManager:
        """Begin a new cooldown."""
        settings = self.settings
        delay_ms = settings.max_delay_ms
        if delay_ms is None:
            # This number of micro-batches may fail; the next one is waited for.
            delay_ms = (settings.max_checkpoint_failures + 1) * self.record.facts.trigger_ms
        return TransitionManager(
            created=self.now,
            cooldown_ms=settings.cooldown_ms,
            stabilization_ms=settings.executing_stabilization_ms,
            max_delay_ms=delay_ms,
        )

    def change_settings(self, settings: CoreSettings | None) -> None:
        """Take over the query's new settings; another restart strategy starts over with its counts."""
        before = self.settings
        self.record.settings = settings
        if self.settings.restart != before.restart:
            self.record.failures.strategy = strategy_of(self.record.facts, self.settings)
        if self.record.failures.manager is not None:
            self.record.failures.manager.retime(self.new_executing_manager())

    @property
    def _store_of(self) -> StoreOf:
        record = self.record
        movable = repartition_obstacle(record.facts, record.checkpoint.provider, self.settings) is None
        if not record.facts.stateful or record.facts.provider_chosen or not movable:
            return "user"
        first = record.facts.checkpoint_partitions is None and record.load.last_progress is None
        return "new" if first else "ours"

    def judge(self, failure: Failure) -> Judgement:
        """Note the failure of a run, decide whether the query restarts, and publish that."""
        record = self.record
        judgement = judge(
            failure,
            at=self.now,
            strategy=record.failures.strategy,
            poison=record.failures.poison,
            store=self._store_of,
        )
        if judgement.reason == "failure_new_store":
            keep_text(record, "store", "unchanged", self.turn)
        record.run_state = "failed"
        record.failures.recovering = True
        record.target = None
        self.give_up("start", "rescale", "end")  # a copy continues beside the failed run
        entry = RunFailure(at=self.now, failure=failure, reason=judgement.reason)
        record.failures.exceptions = (entry, *record.failures.exceptions)[:EXCEPTIONS_KEPT]
        if judgement.backoff_ms is not None:
            self.open_rescale("recoverable_failover")
        self.report(
            judgement.reason,
            before=record.partitions,
            numbers={
                "error": summary(failure.error),
                "offsets": failure.offsets,
                "tries": record.failures.poison.times,
                "backoff_ms": judgement.backoff_ms or 0,
            },
        )
        return judgement

    # Orders

    def start(self, choice: Choice) -> None:
        """Order the start of a query that waits for an answer."""
        record = self.record
        explicit = record.facts.explicit_partitions
        ignored = self.settings.explicit_parallelism == "ignore"
        if choice.partitions is not None and explicit is not None and ignored:
            self.report("explicit_ignored", numbers={"explicit": explicit})
        partitions = None if self.settings.hands_off else choice.partitions
        action = StartQuery(
            id=self.turn.next_action(),
            cause=self.turn.cause,
            query=record.facts.query,
            run=record.run,
            partitions=partitions,
            rescalable=choice.converts or self._makes_rescalable(),
            stages=self.settings.mode != "off",
        )
        record.target = partitions
        record.checkpoint.becomes_rescalable = action.rescalable
        self._ordered("start", action, partitions)

    def _makes_rescalable(self) -> bool:
        record, settings = self.record, self.settings
        return (
            record.run_state == "held" and not settings.hands_off and makes_rescalable(record.facts, settings)
        )

    @property
    def is_to_move(self) -> bool:
        """Whether the outstanding orders move the state of the query."""
        record = self.record
        before, after = record.partitions, record.target
        return record.facts.stateful and before is not None and after is not None and before != after

    @property
    def may_move_on(self) -> bool:
        """Whether a rescale to another count than the present one may be on its way."""
        record = self.record
        orders = record.orders.pending.values()
        return any(order.kind == "rescale" and order.target != record.partitions for order in orders)

    def hold(self, reason: str, *, until: int | None, numbers: Mapping[str, Number]) -> None:
        """Keep the query waiting and report why, also to its application."""
        record = self.record
        choice = Choice(way="nothing", reason=reason, before=record.partitions, numbers=numbers)
        said = record.told.decision
        self.report_hold(choice, until=until)
        if (
            record.run_state != "running"
            and record.told.decision is not None
            and record.told.decision is not said
        ):
            self.turn.emit(
                HoldQuery(
                    id=self.turn.next_action(),
                    cause=self.turn.cause,
                    query=record.facts.query,
                    run=record.run,
                    message=record.told.decision.message,
                    rescalable=self._makes_rescalable(),
                )
            )

    def rescale(self, target: int) -> None:
        """Order another count, together with the state that is moved for it."""
        record = self.record
        assert record.run_state == "running"
        record.target = target
        for order in record.orders.pending.values():
            if order.kind == "rescale":
                record.orders.pending[order.action] = evolve(order, replaced=True)
        action = Rescale(
            id=self.turn.next_action(),
            cause=self.turn.cause,
            query=record.facts.query,
            run=record.run,
            partitions=target,
        )
        self._ordered("rescale", action, target)

    def rescale_in_place(self, choice: Choice) -> None:
        """Order another count in place."""
        if self.settings.hands_off:
            self.close_rescale("no_resources_or_parallelisms_change")
            return
        assert choice.partitions is not None
        if choice.reads is not None:
            self.read_in(choice.reads)
        self.rescale(choice.partitions)

    def read_in(self, tasks: int | None) -> None:
        """Read the sources that can follow the slots in this many tasks; None reads them as Spark does."""
        self.record.load.reads = tasks
        order_bounds(self.record, self.record.requirements, self.turn, self.settings)

    def end_failed(self, message: str | None) -> None:
        """Order the end of a query that has failed, or that cannot be started."""
        record, turn = self.record, self.turn
        query, run = record.facts.query, record.run
        action = FailQuery(id=turn.next_action(), cause=turn.cause, query=query, run=run, message=message)
        self._ordered("end", action)

    def drop_original(self) -> None:
        """Delete the original of a converted state once it has been kept long enough."""
        record, turn = self.record, self.turn
        until = record.checkpoint.original_until
        if until is None or until > self.now or record.state.final:
            return
        record.checkpoint.original_since = record.checkpoint.original_until = None
        action = DropOriginal(id=turn.next_action(), cause=turn.cause, query=record.facts.query)
        record.orders.note_keeping(action.id, "original_not_dropped")
        turn.report("original_dropped", query=record.facts.query)
        turn.emit(action)

    def stop_for_good(self) -> None:
        """Order the end of a query."""
        record, turn = self.record, self.turn
        query, run = record.facts.query, record.run
        action = CancelQuery(id=turn.next_action(), cause=turn.cause, query=query, run=run)
        self._ordered("end", action)

    def take_savepoint(self, request: SavepointRequested) -> str | None:
        """Order a savepoint, or publish that no folder is given for it.

        Return the id of the order, None if there is no folder.
        """
        folder, facts = self._savepoint_folder(request), self.record.facts
        if folder is None:
            return None
        if not request.stop:
            self.report("savepoint", before=self.record.partitions, numbers={"target": folder})
        action = TakeSavepoint(
            id=self.turn.next_action(),
            cause=self.turn.cause,
            query=facts.query,
            run=self.record.run,
            target=folder,
            within=request.within or folder,
            format=request.format if facts.stateful else None,
            keep=self.settings.savepoints_kept if folder == self.settings.savepoint_dir else 0,
            stop=request.stop,
        )
        self._ordered("savepoint", action, request=None if request.stop else evolve(request, target=folder))
        return action.id

    def _savepoint_folder(self, request: SavepointRequested) -> str | None:
        folder = request.target or self.settings.savepoint_dir
        if folder is None:
            self.report("savepoint_nowhere", before=self.record.partitions)
        return folder

    def _ordered(
        self,
        kind: OrderKind,
        action: Action,
        target: int | None = None,
        *,
        request: SavepointRequested | None = None,
    ) -> None:
        order = PendingOrder(action=action.id, kind=kind, target=target, at=self.now, request=request)
        self.record.orders.add(order)
        self.turn.emit(action)

    def give_up(self, *kinds: OrderKind) -> tuple[PendingOrder, ...]:
        """Give up the orders of these kinds, of any kind if none is named; return them."""
        every = self.record.orders.pending.values()
        given_up = tuple(order for order in every if not kinds or order.kind in kinds)
        for order in given_up:
            del self.record.orders.pending[order.action]
        return given_up

    # Incoming reports

    def started(self, event: ev.QueryStarted) -> None:
        """Record that the query runs."""
        record = self.record
        # The outcome of a start comes first: a start still outstanding means that the shim let the query run
        # as it was.
        unasked = self.give_up("start")
        if record.checkpoint.becomes_rescalable and not unasked:
            record.checkpoint.note_rescalable()
            if record.facts.checkpoint_partitions is not None:
                record.checkpoint.original_since, record.checkpoint.original_until = 0, None
        record.checkpoint.started(self.settings.keep_original_ms)
        record.checkpoint.becomes_rescalable = False
        record.run = event.run
        record.run_state = "running"
        record.failures.recovering = False
        before = record.partitions
        record.partitions = event.partitions or before or record.facts.session_partitions
        if record.facts.stateful and before not in (None, record.partitions):
            record.moves.moved = True
            record.moves.failed = FailedMove()
        record.target = None

    def measured(self, event: ev.QueryProgress, *, warm: bool) -> None:
        """Record a committed batch; only the duration of a warm one counts."""
        record, slots = self.record, self.slots
        record.checkpoint.committed(self.now, self.settings.keep_original_ms)
        record.load.last_progress = event
        record.load.pace = record.load.pace.after(event, slots, record.load.measurements.work(event.batch))
        if event.partitions < 1:
            return  # The sender does not know the count, so the batch says nothing about it.
        if not record.facts.stateful:
            return  # Changes in place follow the slots alone: no model is fitted to these batches.
        if event.partitions == record.partitions:
            record.moves.moved = False
            record.history.ran_first(event.duration_ms)
        record.partitions = event.partitions
        if warm and slots > 0:
            record.load.measurements.add(
                batch=event.batch,
                partitions=event.partitions,
                slots=slots,
                duration_ms=event.duration_ms,
                rows=event.input_rows,
            )

    def resting(self) -> None:
        """Record that there has been nothing to read for a while."""
        self.record.load.pace = self.record.load.pace.resting(self.record.run)

    def rescaled(self, count: int, *, took_ms: int | None, copied: Preparation | None = None) -> None:
        """Record that the query has another count, or has kept its own; `took_ms` None: duration unknown.

        `copied` is set if the pause was only a switch.
        """
        record = self.record
        before = record.partitions
        if took_ms is not None:
            copy_ms = None if copied is None else copied.copy_ms
            record.history.switched(self.now - took_ms, copy_ms)
        if count == before:
            return
        since = self.now - HORIZON_MS
        record.moves.count += 1
        record.moves.ended = (*(at for at in record.moves.ended if at > since), self.now)
        record.partitions = count
        record.moves.moved = True
        record.moves.failed = FailedMove()
        record.history.moved()
        if took_ms is None:
            self.report("rescaled_unheard", before=before, after=count)
            return
        record.moves.took(took_ms, copied)
        numbers: dict[str, Number] = {"took_ms": took_ms}
        if copied is not None:
            numbers |= {"copy_ms": copied.copy_ms or 0, "slowdown_ms": copied.slowdown_ms}
        reason = "rescaled" if copied is None else "rescaled_prepared"
        self.report(reason, before=before, after=count, numbers=numbers)

    def saved(self, event: ev.SavepointTaken) -> None:
        """Record that a savepoint is complete, whoever has waited for it."""
        record = self.record
        taken = Savepoint(at=self.now, path=event.path, batch=event.batch, bytes=event.bytes)
        record.savepoints = (taken, *record.savepoints)[:SAVEPOINTS_KEPT]
        numbers: Mapping[str, Number] = {"path": event.path, "batch": event.batch, "bytes": event.bytes}
        self.report("savepoint_taken", before=record.partitions, numbers=numbers)

    def answered(self, event: ev.ActionDone | ev.ActionFailed) -> None:
        """Record the outcome of an order; a count that failed is not tried again for a while."""
        record = self.record
        aside = record.orders.aside.pop(event.action, None)
        if aside is not None and isinstance(event, ev.ActionFailed):
            self.report(aside, before=record.partitions, numbers={"error": event.error})
        keeping = record.orders.keeping.pop(event.action, None)
        if keeping is not None and isinstance(event, ev.ActionFailed):
            # Separate from the query's own activity, whose last report stays valid.
            self.turn.report(keeping, query=record.facts.query, error=event.error)
        self.order = order = record.orders.pending.pop(event.action, None)
        if isinstance(event, ev.ActionDone) or order is None or order.replaced:
            return
        if order.kind == "start":
            record.checkpoint.becomes_rescalable = False
        if order.kind in ("start", "rescale"):
            record.moves.failed.failed(order.target, self.now)
        if order.target is not None and record.target == order.target:
            record.target = None
        code = {
            "start": "start_failed",
            "rescale": "rescale_failed" if record.facts.stateful else "in_place_failed",
            "prepare": "preparation_failed",
            "end": "end_failed",
            "savepoint": "savepoint_failed",
        }[order.kind]
        numbers: Mapping[str, Number] = {"error": event.error}
        again_at = record.moves.failed.again_at
        if code == "rescale_failed":
            if again_at is None:
                code = "rescale_given_up"
            else:
                numbers = {**numbers, "again_ms": again_at - self.now}
        self.report(code, before=record.partitions, after=order.target, numbers=numbers)

    def shown(self, info: ev.QueryInfo) -> None:
        """Adopt what a snapshot shows of the query: earlier reports may be lost."""
        record = self.record
        record.checkpoint.provider = info.facts.provider
        record.checkpoint.format = info.facts.checkpoint_format
        record.checkpoint.prepares_moves = info.facts.prepares_moves
        moved = info.partitions not in (None, record.partitions)
        if record.facts.stateful and record.run_state == "running" and info.partitions is not None and moved:
            self.rescaled(info.partitions, took_ms=None)

    def set_orders_lost(self, partitions: int | None) -> None:
        """Treat `partitions` as the count in force, whatever was ordered; None where it is unknown."""
        record = self.record
        if record.facts.stateful:
            return
        lost = self.give_up("rescale")
        if not lost and partitions is not None and record.run_state == "running":
            record.partitions = partitions  # a different count predates an unreported change in place
        for order in lost:
            if record.target == order.target:
                record.target = None
            if partitions == order.target:
                record.partitions = partitions
                self.close_rescale("succeeded")

    def missed(self, info: ev.QueryInfo) -> ev.Event | None:
        """Return the event that was missed, None if there need not have been any."""
        record, query, cause = self.record, info.facts.query, self.turn.cause
        if info.run_state == "failed" and info.failure is not None:
            if record.state.looks_at_failures_later:
                return None
            # An equal failure can be a new one: one attempt too many is better than one too few.
            known = [exception.failure for exception in record.failures.exceptions[:1]]
            if record.run_state == "failed" and info.failure in known:
                return None
            return ev.QueryFailed(id=cause, at=self.now, query=query, run=info.run, failure=info.failure)
        if info.run_state == record.run_state:
            return None
        if info.run_state == "running":
            count = info.partitions or 0
            return ev.QueryStarted(id=cause, at=self.now, query=query, run=info.run, partitions=count)
        return ev.QuerySubmitted(id=cause, at=self.now, facts=info.facts, run=info.run)


@define
class _Submission:
    """Answers the manager for a query that waits for its start."""

    share: Share
    hands_off: bool

    def sufficient(self) -> bool:
        return self.hands_off or self.share.may_start

    def desired(self) -> bool:
        # Where only tasks bring executors, more come after the start.
        return self.share.content or (not self.share.suffices and self.share.may_start)


def strategy_of(facts: QueryFacts, settings: CoreSettings) -> RestartStrategy:
    """Create the restart strategy of a query.

    The seed differs between queries, so that those that fail together do not restart together; it is always
    the same for one query.
    """
    return new_strategy(settings.restart, int.from_bytes(facts.query.encode()[-8:], "big"))


def _plain(weight: float) -> Number:
    return int(weight) if weight == int(weight) else round(weight, 3)
