"""The front door: ``Scheduler.handle(event) -> (action, ...)``.

Laws
----
1. One door. Only `handle` changes anything, and only an event makes it do so.
2. The past comes in, orders go out. What has become of an order is an event like any other.
3. Time is the time of the event. It never runs backwards: an event that is older than the last one counts
as just as old. 4. The same events give the same actions, with the same ids: a run is the list of its
events. 5. Every order names its cause, and every decision its reason; holding still is a decision. 6.
What is due is done before what has just happened, so that a late timer changes nothing. 7. State is plain
data.

Theory of operation
-------------------
Executor events change the slots (`slots.py`), and a change of their total goes to every query. Events
about a query go to its machine (`query/machine.py`), which hands them to the state the query is in
(`query/*.py`). States choose a count (`parallelism.py`), wait as their transition manager says, and
order. This file knows which query an event is about, counts ids, and keeps one timer per query.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from attrs import define, field, frozen

from spark_elastic.core import reasons
from spark_elastic.core.actions import (
    Action,
    CancelQuery,
    CancelTimer,
    Configure,
    Decision,
    FailQuery,
    Report,
    SetParallelism,
    SetTimer,
    StartQuery,
    StopQuery,
    TakeSavepoint,
)
from spark_elastic.core.declarations import Declarations
from spark_elastic.core.events import (
    ActionOutcome,
    CancelRequested,
    Event,
    ExecutorAdded,
    ExecutorDecommissioning,
    ExecutorExcluded,
    ExecutorRemoved,
    ExecutorUnexcluded,
    ExecutorUsage,
    PolicyFileChanged,
    PolicyFileRefused,
    QueryEvent,
    QueryFacts,
    QueryInfo,
    QueryProgress,
    QueryStopped,
    QuerySubmitted,
    RequirementsRequested,
    SavepointRequested,
    SavepointTaken,
    Snapshot,
    StageCompleted,
    TimerFired,
)
from spark_elastic.core.failures.exponential_delay import SeededJitter
from spark_elastic.core.failures.strategy import STRATEGIES, Jitter, NoRestart, RestartStrategy
from spark_elastic.core.history import Rescale
from spark_elastic.core.query.machine import QueryMachine
from spark_elastic.core.query.record import RunFailure, Savepoint
from spark_elastic.core.requirements import Requirements
from spark_elastic.core.saved import Codec, NotRestorable, Plain
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.slots import SlotPool
from spark_elastic.core.sources import bound_sources, repeat_bounds
from spark_elastic.core.supply import Supply
from spark_elastic.core.task_size import TaskSize
from spark_elastic.core.turn import Number, Timer

_EXECUTOR_EVENTS = (
    ExecutorAdded,
    ExecutorRemoved,
    ExecutorExcluded,
    ExecutorUnexcluded,
    ExecutorDecommissioning,
)
_QUERY_ORDERS = (StartQuery, StopQuery, FailQuery, CancelQuery, TakeSavepoint, SetParallelism)
_FINISHED_KEPT = 100
"""Finished queries that can still be looked at."""


@frozen(kw_only=True)
class QueryView:
    """One query as it is now: `restarted` counts its restarts, `rescaled` those for another count.

    `history`, `exceptions` and `savepoints` have the newest first.
    """

    facts: QueryFacts
    run: str
    state: str
    partitions: int | None
    target: int | None
    requirements: Requirements
    last_progress: QueryProgress | None
    last_decision: Decision | None
    restarted: int
    rescaled: int
    history: tuple[Rescale, ...]
    exceptions: tuple[RunFailure, ...]
    savepoints: tuple[Savepoint, ...]


@define
class _Queries(Mapping[str, QueryView]):
    """Views of all queries, made when they are asked for."""

    _machines: Mapping[str, QueryMachine]

    def __getitem__(self, query: str) -> QueryView:
        machine = self._machines[query]
        record = machine.record
        return QueryView(
            facts=record.facts,
            run=record.run,
            state=machine.state.name,
            partitions=record.partitions,
            target=record.target,
            requirements=machine.requirements,
            last_progress=record.last_progress,
            last_decision=record.last_decision,
            restarted=record.restarted,
            rescaled=record.rescaled,
            history=tuple(record.history.records),
            exceptions=record.exceptions,
            savepoints=record.savepoints,
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._machines)

    def __len__(self) -> int:
        return len(self._machines)


@define
class Scheduler:
    """All queries of one application and the slots they share."""

    settings: CoreSettings
    slots: SlotPool = field(factory=SlotPool, init=False)
    _machines: dict[str, QueryMachine] = field(factory=dict, init=False)
    _declarations: Declarations = field(init=False)
    _supply: Supply = field(init=False)
    _timers: dict[str, str] = field(factory=dict, init=False)
    _orders: dict[str, str] = field(factory=dict, init=False)
    _now: int = field(default=0, init=False)
    _last_action: int = field(default=0, init=False)
    _last_decision: int = field(default=0, init=False)
    _last_timer: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._declarations = Declarations(self.settings)
        self._supply = Supply(self.settings)

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Scheduler:
        """Take up what `save` wrote: all that follows is as if nothing had been. Raises NotRestorable."""
        scheduler = codec().decode(state)
        try:
            scheduler.validate()
        except AssertionError as error:
            raise NotRestorable(f"it breaks an invariant: {error}") from error
        return scheduler

    def save(self) -> Plain:
        """Return the whole state as plain data, ready for JSON."""
        return codec().encode(self)

    @property
    def now(self) -> int:
        """The time of the latest event (epoch ms), 0 before the first."""
        return self._now

    @property
    def policy_file(self) -> PolicyFileChanged | None:
        """What the policy file said when it was last right, None before that."""
        return self._declarations.file

    @property
    def queries(self) -> Mapping[str, QueryView]:
        """All queries by id, the latest finished ones among them."""
        return _Queries(self._machines)

    def handle(self, event: Event) -> tuple[Action, ...]:
        """Take in one event and return what is to be done about it, in order."""
        if event.at > self._now:
            self._now = event.at
        turn = _Turn(self, event.id, self._now, self.slots.total)
        match event:  # the most frequent first
            case StageCompleted():
                pass  # Decisions are made by slots and batches alone.
            case ExecutorUsage():
                self.slots.apply(event)
            case (
                QueryEvent(query=query)
                | QueryStopped(query=query)
                | SavepointTaken(query=query)
                | CancelRequested(query=query)
            ):
                self._hand_over(query, event, turn)
            case Snapshot():
                self._take_over(event, turn)
            case TimerFired(timer=timer):
                self._timer_fired(timer, turn)
            case QuerySubmitted():
                self._submitted(event, turn)
            case SavepointRequested(query=query):
                self._savepoint_requested(query, event, turn)
            case RequirementsRequested(query=query, bounds=bounds):
                self._declarations.requested(query, bounds)
                asked = ", ".join(f"{vertex} {low} to {high}" for vertex, (low, high) in bounds.items())
                turn.report("bounds_requested", query=query, by=event.by, bounds=asked)
                self._bounds_changed((query,), turn)
            case PolicyFileChanged():
                known = {query: machine.record.facts for query, machine in self._machines.items()}
                self._declarations.file_changed(event, known)
                turn.report("policy_file_read", path=event.path)
                self._bounds_changed(known, turn)
            case PolicyFileRefused():
                turn.report("policy_file_refused", path=event.path, errors="; ".join(event.errors))
            case ActionOutcome(action=action):
                if not self._supply.answered(event, self.slots, turn):
                    self._hand_over(self._orders.pop(action, None), event, turn)
            case _ if isinstance(event, _EXECUTOR_EVENTS):
                self.slots.apply(event)
                self._supply.stale = True
                self._tell_slots(turn)
            case _:
                raise TypeError(f"{type(event).__name__} is not an event of the contract")
        if self._supply.has_to_look(self._now):
            self._supply.reconcile(self.slots, self._live_requirements(), turn)
        return tuple(turn.actions)

    def _live_requirements(self) -> Iterator[Requirements]:
        return (machine.requirements for machine in self._machines.values() if not machine.is_finished)

    def _take_over(self, event: Snapshot, turn: _Turn) -> None:
        """Answer with the limits and take the world as it is; what was known and still holds goes on."""
        settings = self.settings
        turn.emit(
            Configure(
                id=turn.next_action(),
                cause=event.id,
                warm_up_ms=0 if settings.advise_only else settings.warm_up_ms,
                hang_ms=settings.hang_ms,
                start_wait_ms=settings.start_wait_ms,
                decision_wait_ms=settings.decision_wait_ms,
                restarts=not (settings.advise_only or isinstance(settings.restart, NoRestart)),
            )
        )
        for timer in (machine.timer for machine in self._machines.values()):
            if timer is not None:  # who goes on from a saved state has none of them set
                turn.emit(SetTimer(id=turn.next_action(), cause=turn.cause, timer=timer.id, at=timer.at))
        task = TaskSize.of(event.conf)
        self.slots.replace(event.executors, task)
        self._supply.begin(event.conf, task, turn)
        shown = {info.facts.query: info for info in event.queries}
        for query, machine in tuple(self._machines.items()):
            if not machine.is_finished:
                if machine.found_again(shown.get(query), turn):
                    repeat_bounds(machine.record.facts, machine.requirements, turn)
                else:
                    machine.supersede(turn)
                self._settle(query, machine, turn)
        self._tell_slots(turn)
        for query, info in shown.items():
            machine_now = self._machines.get(query)
            if machine_now is None or machine_now.is_finished:
                self._take_up(info, turn, found=True)

    def _submitted(self, event: QuerySubmitted, turn: _Turn) -> None:
        machine = self._machines.get(event.query)
        if machine is not None and not machine.is_finished:
            if machine.record.run == event.run:
                self._hand_over(event.query, event, turn)
                return
            machine.supersede(turn)
            self._settle(event.query, machine, turn)
        info = QueryInfo(facts=event.facts, run=event.run, phase="held")
        self._take_up(info, turn)

    def _take_up(self, info: QueryInfo, turn: _Turn, *, found: bool = False) -> None:
        query = info.facts.query
        requirements = self._requirements(info.facts, turn)
        machine = QueryMachine.found(info, self._now, self.settings, requirements)
        self._machines.pop(query, None)
        self._machines[query] = machine
        self._supply.stale = True
        bound_sources(info.facts, None, requirements, turn, found=found)
        machine.begin(turn)
        self._settle(query, machine, turn)

    def _timer_fired(self, timer: str, turn: _Turn) -> None:
        if self._supply.timer_fired(timer):
            return
        # A timer that was cancelled while it fired is no longer known.
        query = self._timers.pop(timer, None)
        if query is not None:
            machine = self._machines[query]
            machine.timer = None
            machine.time_passed(turn)
            self._settle(query, machine, turn)

    def _hand_over(self, query: str | None, event: Event, turn: _Turn) -> None:
        machine = None if query is None else self._machines.get(query)
        if query is not None and machine is not None:
            machine.handle(event, turn)
            self._settle(query, machine, turn)

    def _savepoint_requested(self, query: str, event: SavepointRequested, turn: _Turn) -> None:
        machine = self._machines.get(query)
        if machine is not None:
            machine.savepoint_requested(event, turn)
            self._settle(query, machine, turn)

    def _tell_slots(self, turn: _Turn) -> None:
        if self.slots.total == turn.slots_before:
            return
        for query, machine in tuple(self._machines.items()):
            if not machine.is_finished:
                machine.resources_changed(turn)
                self._settle(query, machine, turn)

    def _requirements(self, facts: QueryFacts, turn: _Turn) -> Requirements:
        requirements, errors = self._declarations.requirements(facts)
        if errors:
            turn.report("bounds_refused", query=facts.query, errors="; ".join(errors))
        return requirements

    def _bounds_changed(self, queries: Iterable[str], turn: _Turn) -> None:
        """Look again at what these queries may have; there may be unknown ones among them."""
        for query in queries:
            machine = self._machines.get(query)
            if machine is None or machine.is_finished:
                continue
            requirements = self._requirements(machine.record.facts, turn)
            if requirements != machine.requirements:
                bound_sources(machine.record.facts, machine.requirements, requirements, turn)
                machine.requirements_changed(requirements, turn)
                self._supply.stale = True
                self._settle(query, machine, turn)

    def _forget_finished(self) -> None:
        finished = [query for query, machine in self._machines.items() if machine.is_finished]
        if len(finished) <= _FINISHED_KEPT:
            return
        # By when they finished: one that began long ago may be the one that is looked for.
        finished.sort(key=lambda query: self._machines[query].state.entered)
        for query in finished[:-_FINISHED_KEPT]:
            del self._machines[query]
            self._declarations.forget(query)

    def _settle(self, query: str, machine: QueryMachine, turn: _Turn) -> None:
        """Bring the books in step with what the query's state says now."""
        if machine.is_finished:
            self._supply.stale = True
            self._forget_finished()
        due = machine.state.due
        timer = machine.timer
        if timer is not None and timer.at != due:
            del self._timers[timer.id]
            machine.timer = None
            turn.emit(CancelTimer(id=turn.next_action(), cause=turn.cause, timer=timer.id))
        if due is not None and machine.timer is None:
            machine.timer = Timer(id=turn.next_timer(), at=due)
            self._timers[machine.timer.id] = query
            turn.emit(SetTimer(id=turn.next_action(), cause=turn.cause, timer=machine.timer.id, at=due))

    def validate(self) -> None:
        """Check every invariant. Raises AssertionError."""
        self.slots.validate()
        for query, machine in self._machines.items():
            assert machine.record.facts.query == query
            machine.validate()
        timers = {machine.timer.id: query for query, machine in self._machines.items() if machine.timer}
        assert timers == self._timers, "a timer without an owner"
        self._supply.validate(self._now, self.slots, self._live_requirements())
        orders = {
            order: query for query, machine in self._machines.items() for order in machine.record.orders
        }
        assert orders == self._orders, "an order without an owner"
        assert sum(machine.is_finished for machine in self._machines.values()) <= _FINISHED_KEPT


@cache
def codec() -> Codec[Scheduler]:
    """Return what writes schedulers and reads them, made when it is first asked for."""
    return Codec(Scheduler, {RestartStrategy: STRATEGIES, Jitter: (SeededJitter,)})


@define
class _Turn:
    """The turn of one event; what each method is for is said in `turn.py`."""

    scheduler: Scheduler
    cause: str
    now: int
    slots_before: int
    actions: list[Action] = field(factory=list)

    @property
    def settings(self) -> CoreSettings:
        return self.scheduler.settings

    @property
    def slots(self) -> int:
        return self.scheduler.slots.total

    def next_action(self) -> str:
        self.scheduler._last_action += 1
        return f"a{self.scheduler._last_action}"

    def next_timer(self) -> str:
        self.scheduler._last_timer += 1
        return f"t{self.scheduler._last_timer}"

    def publish(
        self,
        reason: str,
        message: str,
        *,
        query: str | None,
        before: int | None,
        after: int | None,
        numbers: Mapping[str, Number],
        alternatives: tuple[str, ...] = (),
        until: int | None = None,
    ) -> Decision:
        self.scheduler._last_decision += 1
        decision = Decision(
            number=self.scheduler._last_decision,
            query=query,
            at=self.now,
            kind=reasons.REASONS[reason].kind,
            reason=reason,
            message=message,
            cause=self.cause,
            before=before,
            after=after,
            numbers=numbers,
            alternatives=alternatives,
            until=until,
        )
        self.emit(Report(id=self.next_action(), cause=self.cause, decision=decision))
        return decision

    def report(
        self,
        reason: str,
        *,
        query: str | None = None,
        before: int | None = None,
        after: int | None = None,
        **numbers: Number,
    ) -> None:
        values = {**numbers, "slots": self.slots}
        message = reasons.message(reason, **values, before=before, after=after)
        self.publish(reason, message, query=query, before=before, after=after, numbers=values)

    def emit(self, action: Action) -> None:
        if isinstance(action, _QUERY_ORDERS):
            self.scheduler._orders[action.id] = action.query
        self.actions.append(action)

    def give_up(self, order: str) -> None:
        self.scheduler._orders.pop(order, None)
