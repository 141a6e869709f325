"""The front door: ``Scheduler.handle(event) -> (action, ...)``.

Laws
----
1. One door. Only `handle` changes anything, and only in response to an event.
2. Facts of the past come in, orders go out. The outcome of an order is an event like any other.
3. Time is the time of the event, and never runs backwards: an older event counts as simultaneous.
4. The same events give the same actions, with the same ids: a run is the list of its events.
5. Every order names its cause, and every decision its reason; doing nothing is a decision.
6. Work that has become due is done before the event is handled, so that a late timer changes nothing.
7. State is plain data.

Executors change slots and shares (`cluster/`); a query's events go to its machine and state (`query/`).

Cost of an event
----------------
Reports of an executor's usage end here, and those of a stage in the measurements of its query. A micro-batch
concerns its own query alone, unless it makes room for another query's move. A change of slots goes to the
queries with a new share, except those that had and still have all they can use (`Executing.lets_pass`). Slots
are divided again only if they changed or a touched query has another `Footing`. Executors are counted only
after that, after a decision of policies, or if `Supply.has_to_look`. ``make bench-core`` measures this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from attrs import define, field

from spark_elastic.core import events as ev
from spark_elastic.core.actions import Action
from spark_elastic.core.bounds.kept import Requested
from spark_elastic.core.bounds.requirements import Requirements
from spark_elastic.core.bounds.shares import Share
from spark_elastic.core.cluster.slots import SlotPool, TaskSize
from spark_elastic.core.cluster.supply import Supply
from spark_elastic.core.declarations import Declarations, keep_again, keep_bounds, recall_bounds
from spark_elastic.core.events import BatchStages, TaskEvent
from spark_elastic.core.failures.strategy import STRATEGIES, Jitter, RestartStrategy, SeededJitter
from spark_elastic.core.own_settings import may_restart, report_settings
from spark_elastic.core.policies.custom import CustomMetrics
from spark_elastic.core.policies.planner import Planner
from spark_elastic.core.policies.policy import PolicyAnswered
from spark_elastic.core.query import internal_events as inner
from spark_elastic.core.query import machine as machines
from spark_elastic.core.query.machine import QueryMachine
from spark_elastic.core.query.record import QueryRecord
from spark_elastic.core.query_view import Queries, QueryView
from spark_elastic.core.rescale.concurrency import MoveQueue
from spark_elastic.core.saved import Codec, NotRestorable, Plain
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.turn import Counters, Turn

_FINISHED_KEPT = 100  # finished queries that can still be looked at


@define
class Scheduler:
    """All queries of one application and the slots they share."""

    settings: CoreSettings
    slots: SlotPool = field(factory=SlotPool, init=False)
    _machines: dict[str, QueryMachine] = field(factory=dict, init=False)
    _declarations: Declarations = field(init=False)
    _supply: Supply = field(init=False)
    _planner: Planner = field(init=False)
    _moves: MoveQueue = field(init=False)
    _counters: Counters = field(factory=Counters, init=False)
    _now: int = field(default=0, init=False)
    _took_over: bool = field(default=False, init=False)  # the last event was a snapshot
    _asks_of_failures: bool = field(default=False, init=False)  # the shim asks about queries that have failed
    _divisions: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._declarations = Declarations(self.settings)
        self._supply = Supply(self.settings)
        self._planner = Planner(self.settings)
        self._moves = MoveQueue(self.settings.max_concurrent_rescales)

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Scheduler:
        """Restore what `save` wrote and continue exactly as without the break. Raises NotRestorable."""
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
    def policy_file(self) -> ev.PolicyFileChanged | None:
        """The last valid content of the policy file, None before the first."""
        return self._declarations.file

    @property
    def divisions(self) -> int:
        """A counter of changed shares; while it is unchanged, each query keeps the slots that it had."""
        return self._divisions

    @property
    def plans(self) -> int:
        """A counter of policy runs; while it is unchanged, policies have decided nothing new."""
        return self._planner.plans

    @property
    def queries(self) -> Mapping[str, QueryView]:
        """All queries by id, including the latest finished ones."""
        return Queries(self._machines, self.settings, self._planner)

    @property
    def custom_policies(self) -> Mapping[str, CustomMetrics]:
        """The configured custom policies, by name."""
        return self._planner.customs.metrics

    @property
    def usual_slots(self) -> int:
        """The expected slots of an executor while none is present to be looked at."""
        return self._supply.demand.usual_slots

    def handle(self, event: ev.Event) -> tuple[Action, ...]:
        """Process one event and return the resulting actions, in order."""
        if event.at > self._now:
            self._now = event.at
        turn = Turn(
            settings=self.settings, cause=event.id, now=self._now, slots=self.slots.total,
            moves=self._moves, counters=self._counters, name_of=partial(machines.name_of, self._machines),
        )  # fmt: skip
        match event:  # the most frequent first
            case ev.ExecutorUsage():
                self._supply.used(event, self.slots)
            case BatchStages():
                self._planner.batch_event(event)
            case (
                ev.QueryEvent(query=query)
                | TaskEvent(query=query)
                | ev.CancelRequested(query=query)
                | ev.SavepointRequested(query=query)
                | ev.ActionOutcome(query=str() as query)
                | ev.TimerFired(query=str() as query)
            ):
                self._tell(query, event, turn)
            case ev.ExecutorEvent():
                other_slots = self._supply.changed(event, self.slots)
                self._planner.executor_event(event, self.slots)
                if other_slots:
                    turn.slots = self.slots.total
                    self._share_out(turn, {})
            case ev.ActionOutcome():
                self._supply.answered(event, self.slots, turn)
            case ev.TimerFired():
                self._supply.timer_fired(event.timer)
                self._planner.alarm.rings(event.timer)
            case ev.QuerySubmitted():
                self._submitted(event, turn)
            case ev.RequirementsRequested() | ev.RequirementsDropped():
                self._bounds_set(event, turn)
            case PolicyAnswered():
                self._planner.customs.answered(event, turn)
            case ev.PolicyFileChanged():
                self._policy_file_changed(event, turn)
            case ev.PolicyFileRefused():
                turn.report("policy_file_refused", path=event.path, errors="; ".join(event.errors))
            case ev.Snapshot():
                self._take_over(event, turn)
            case _:
                raise TypeError(f"{type(event).__name__} is not an event of the contract")
        self._took_over = isinstance(event, ev.Snapshot)
        self._settle(turn)
        decides = self._planner.has_to_decide(self._now)
        if decides:
            self._plan(turn)
        if self._moves.stale:
            self._let_move(turn)
        self._keep_timers(turn)
        if decides or turn.shared_out or self._supply.has_to_look(self._now):
            requested = self._supply.demand.requested
            wanted = self._planner.wanted(machines.live(self._machines))
            self._supply.reconcile(self.slots, machines.live_requirements(self._machines), turn, wanted)
            self._planner.requested(self._now, requested, self._supply, self.slots)
        self._planner.alarm.keep(self._planner.due, turn)
        return tuple(turn.actions)

    def _tell(self, query: str, event: inner.QueryInput, turn: Turn) -> None:
        """Pass an event to the machine of a query; an event about an unknown query is ignored."""
        machine = self._machines.get(query)
        if machine is not None:
            if not isinstance(event, TaskEvent):  # task reports alone trigger nothing
                turn.touch(query, machine.record.footing)
            machine.handle(event, turn)
            self._planner.told(machine.record, event, turn.now, surplus=self._supply.has_surplus)

    def _settle(self, turn: Turn) -> None:
        """Share the slots out until the shares fit the standing of each query, and each query knows its own.

        Notifying queries leads only to starts and rescales, and a query starts once, so the loop terminates.
        """
        for query in turn.touched:
            if self._machines[query].is_finished:
                self._planner.forget(query)
        while turn.touched:
            if any(self._machines[query].record.footing != shared for query, shared in turn.touched.items()):
                self._share_out(turn, {})
            untold = {query for query in turn.touched if self._machines[query].record.has_other_slots}
            if not untold:
                return
            for query in machines.live(self._machines):
                if query in untold:
                    self._tell(query, inner.SlotsChanged(), turn)

    def _keep_timers(self, turn: Turn) -> None:
        """Set the timers of the notified queries; forget queries that ended long ago."""
        for query in turn.touched:
            self._machines[query].keep_timer(turn)
        ended = turn.touched and any(self._machines[query].is_finished for query in turn.touched)
        for over in machines.oldest_finished(self._machines, _FINISHED_KEPT) if ended else ():
            del self._machines[over]
            self._declarations.forget(over)

    def _plan(self, turn: Turn) -> None:
        """Ask the policies what the queries should have, and put it in force."""
        records = {query: self._machines[query].record for query in machines.live(self._machines)}
        changed = self._planner.decide(records, self.slots, self._supply, turn)
        self._put_in_force({query: records[query] for query in changed}, turn)
        self._settle(turn)

    def _share_out(self, turn: Turn, changed: Mapping[str, Requirements]) -> Mapping[str, Share]:
        """Give every query its share of the slots; queries are notified before the turn ends.

        The `changed` ones are about to be notified of these requirements, and of their share along with them.
        """
        turn.shared_out = True
        shares = self._supply.share_out(machines.claims(self._machines, changed), self.slots)
        for query, share in shares.items():
            record = self._machines[query].record
            if record.shares.now != share and query not in changed:
                turn.touch(query, None)
                record.shares.give(share, self._now)
                self._divisions += 1
        turn.touched.update(dict.fromkeys(changed))
        for query in turn.touched:
            footing = self._machines[query].record.footing
            turn.touched[query] = footing._replace(requirements=changed.get(query, footing.requirements))
        return shares

    def _let_move(self, turn: Turn) -> None:
        """Let the next queries move their state, if they still want to; notify the others that they wait."""
        for query in self._moves.next(self._now):
            self._tell(query, inner.MoveGranted(), turn)
        for query in self._moves.settle():
            self._tell(query, inner.MoveQueued(), turn)

    def _take_over(self, event: ev.Snapshot, turn: Turn) -> None:
        """Answer with the limits and adopt the state of the world; known state that still holds continues."""
        self._configure(turn)
        for machine in self._machines.values():
            if machine.record.timer is not None:  # after a restore from a saved state none of them is set
                turn.repeat_timer(machine.record.timer)
        task = TaskSize.of(event.conf)
        self.slots.replace(event.executors, task)
        turn.slots = self.slots.total
        self._supply.begin(event.conf, task, turn)
        self._planner.begin(event.executors, turn.now)
        self._share_out(turn, {})
        shown = {info.facts.query: info for info in event.queries}
        for query in machines.live(self._machines):
            self._tell(query, inner.Recovered(shown.get(query)), turn)
        live = {query: self._machines[query].record for query in machines.live(self._machines)}
        keep_again(live.values(), shown, self._declarations, turn)
        self._take_up([info for query, info in shown.items() if query not in live], turn, found=True)

    def _configure(self, turn: Turn) -> None:
        """Send the shim the limits, and whether any query could be restarted after a failure."""
        restarts = may_restart(self.settings, self._declarations.file) or machines.restarts(self._machines)
        self._asks_of_failures = restarts and not self.settings.advise_only
        turn.configure(restarts=self._asks_of_failures)

    def _submitted(self, event: ev.QuerySubmitted, turn: Turn) -> None:
        machine = self._machines.get(event.query)
        if machine is not None and not machine.is_finished:
            if machine.record.run == event.run:
                return self._tell(event.query, event, turn)
            self._tell(event.query, inner.Superseded(), turn)
        self._take_up([ev.QueryInfo(facts=event.facts, run=event.run, run_state="held")], turn, found=False)

    def _take_up(self, infos: Sequence[ev.QueryInfo], turn: Turn, *, found: bool) -> None:
        for info in infos:
            query = turn.meet(info.facts)
            own, problems = self._declarations.settings_of(info.facts)
            report_settings(query, own, self.settings, problems, turn)
            adaptive = (own or self.settings).mode == "adaptive"
            outdated = adaptive and recall_bounds(info.facts, self._declarations, turn)
            requirements = self._requirements(info.facts, own, turn)
            if self._machines.pop(query, None) is not None:
                self._planner.forget(query)
            self._machines[query] = QueryMachine.found(info, self._now, self.settings, own, requirements)
            turn.touch(query, None)
            if outdated:
                self._keep(query, None, turn)
        # No query begins before the needs of the others are known.
        self._share_out(turn, {})
        for info in infos:
            self._tell(info.facts.query, inner.Begun(found=found), turn)

    def _requirements(self, facts: ev.QueryFacts, own: CoreSettings | None, turn: Turn) -> Requirements:
        requirements, errors = self._declarations.requirements(facts, own)
        if errors:
            turn.report("bounds_refused", query=facts.query, errors="; ".join(errors))
        return requirements

    def _bounds_set(self, event: ev.RequirementsRequested | ev.RequirementsDropped, turn: Turn) -> None:
        requested = None
        if isinstance(event, ev.RequirementsRequested):
            machine = self._machines.get(event.query)
            facts = None if machine is None else machine.record.facts
            requested = self._declarations.requested(event, facts)
            turn.report("bounds_requested", query=event.query, by=event.by, bounds=requested.shown)
        else:
            self._declarations.forget(event.query)
            turn.report("bounds_dropped", query=event.query, by=event.by)
        self._keep(event.query, requested, turn)
        self._tell_bounds((event.query,), turn)

    def _keep(self, query: str, requested: Requested | None, turn: Turn) -> None:
        """Keep bounds beside the checkpoint, None to remove them; the shim knows only live queries."""
        machine = self._machines.get(query)
        if machine is not None and not machine.is_finished:
            keep_bounds(machine.record, requested, turn)

    def _policy_file_changed(self, event: ev.PolicyFileChanged, turn: Turn) -> None:
        known = {query: machine.record.facts for query, machine in self._machines.items()}
        # The queries of the preceding snapshot were taken up without the file, which is read right after it.
        first = self._took_over and self._declarations.file is None
        outdated = self._declarations.file_changed(event, known)
        turn.report("policy_file_read", path=event.path)
        for query in outdated:
            self._keep(query, None, turn)
        self._tell_settings(turn, first=first)
        self._tell_bounds(known, turn)

    def _tell_settings(self, turn: Turn, *, first: bool) -> None:
        """Give the queries their new settings; a running query keeps some of its old ones."""
        for query in machines.live(self._machines):
            record = self._machines[query].record
            running = None if first else record.settings or self.settings
            own, problems = self._declarations.settings_of(record.facts, running)
            changed = own != record.settings
            report_settings(query, own if changed else None, self.settings, problems, turn)
            if changed:
                if own is None:
                    turn.report("no_own_settings", query=query)
                self._tell(query, inner.SettingsChanged(own), turn)
        if may_restart(self.settings, self._declarations.file) and not self._asks_of_failures:
            self._configure(turn)

    def _tell_bounds(self, queries: Iterable[str], turn: Turn) -> None:
        """Recompute what these queries may have; unknown ones are skipped."""
        known = (self._machines[query] for query in queries if query in self._machines)
        live = {machine.record.facts.query: machine.record for machine in known if not machine.is_finished}
        for record in live.values():
            record.declare(self._requirements(record.facts, record.settings, turn))
        self._put_in_force(live, turn)

    def _put_in_force(self, records: Mapping[str, QueryRecord], turn: Turn) -> None:
        """Give queries the requirements that follow from their declared bounds and their grants."""
        changed: dict[str, Requirements] = {}
        for query, record in records.items():
            needs = self._planner.requirements(query, record.declared, record.settings or self.settings)
            if needs != record.requirements:
                changed[query] = needs
        if not changed:
            return
        shares = self._share_out(turn, changed)
        for query, requirements in changed.items():
            share = shares.get(query, self._machines[query].record.shares.now)
            self._tell(query, inner.BoundsChanged(requirements, share), turn)

    def validate(self) -> None:
        """Check every invariant. Raises AssertionError."""
        self.slots.validate()
        machines.validate(self._machines, self._moves)
        self._planner.validate()
        for query, share in self._supply.share_out(machines.claims(self._machines, {}), self.slots).items():
            record = self._machines[query].record
            assert share == record.shares.now == record.shares.known
        self._supply.validate(self._now, self.slots, machines.live_requirements(self._machines))
        assert sum(machine.is_finished for machine in self._machines.values()) <= _FINISHED_KEPT


@cache
def codec() -> Codec[Scheduler]:
    """Return the codec for schedulers, created on first use."""
    return Codec(Scheduler, {RestartStrategy: STRATEGIES, Jitter: (SeededJitter,)})
