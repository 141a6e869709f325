"""Random lives of executors, bounds and queries, with a stand-in for the shim that answers late or badly."""

from __future__ import annotations

from typing import Any, TypeGuard

from attrs import evolve
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from spark_elastic.core import events as ev
from spark_elastic.core.actions import (
    Action,
    CancelQuery,
    DecommissionExecutors,
    FailQuery,
    HoldQuery,
    KillExecutors,
    Report,
    RequestExecutors,
    Rescale,
    StartQuery,
    TakeSavepoint,
)
from spark_elastic.core.bounds.sharing import WantedSharing
from spark_elastic.core.failures.strategy import ExponentialDelay, FailureRate, FixedDelay, NoRestart
from spark_elastic.core.rescale.concurrency import PATIENCE_MS
from spark_elastic.core.settings import CoreSettings
from tests.unit.core.builder import OLD, STATEFUL, STATELESS, Scene, ordered_for, snapshot
from tests.unit.runtime.seen import seen

EXECUTORS = st.sampled_from("01234")
QUERIES = st.sampled_from(["q0", "q1", "q2"])
FACTS = st.sampled_from(
    [
        STATEFUL,
        STATELESS,
        OLD,
        evolve(OLD, provider="hdfs"),
        evolve(STATEFUL, provider="hdfs", checkpoint_format=1),
        evolve(STATEFUL, trigger="available_now", trigger_ms=0),
        evolve(STATEFUL, explicit_partitions=4, session_partitions=4),
    ]
)
SETTINGS = st.builds(
    CoreSettings,
    mode=st.sampled_from(["reactive", "adaptive"]),
    advise_only=st.sampled_from([False, False, False, True]),
    resource_wait_ms=st.sampled_from([-1, 0, 5_000]),
    submission_stabilization_ms=st.sampled_from([0, 2_000]),
    cooldown_ms=st.sampled_from([0, 3_000]),
    executing_stabilization_ms=st.sampled_from([0, 2_000]),
    max_delay_ms=st.sampled_from([None, 0, 5_000]),
    min_parallelism_increase=st.sampled_from([1, 2]),
    max_concurrent_rescales=st.sampled_from([1, 1, 2, 4]),
    scaling_interval_max_ms=st.sampled_from([None, 20_000]),
    rescale_policy=st.sampled_from(["gain", "always"]),
    restart=st.sampled_from(
        [
            NoRestart(),
            FixedDelay(attempts=2, delay_ms=1_000),
            FailureRate(max_failures_per_interval=2, interval_ms=5_000, delay_ms=500),
            ExponentialDelay(max_backoff_ms=4_000),
        ]
    ),
    explicit_parallelism=st.sampled_from(["fixed", "upperBound", "ignore"]),
    max_parallelism=st.sampled_from([1, 3, 32_768]),
    sharing=st.dictionaries(
        QUERIES,
        st.builds(
            WantedSharing,
            priority=st.sampled_from([None, 1, -1]),
            weight=st.sampled_from([None, 0.5, 3.0]),
            group=st.sampled_from([None, None, "etl"]),
        ),
    ),
    history_size=st.sampled_from([1, 4]),
    policy=st.sampled_from(["declared", "autoscale", "autoscale"]),
    scale_down_window_ms=st.sampled_from([0, 5_000, 300_000]),
    target_load=st.sampled_from([0.1, 0.75]),
    max_lag_ms=st.sampled_from([None, 2_000]),
    min_executors=st.sampled_from([0, 0, 3]),
    max_executors=st.sampled_from([None, None, 3]),
)


ABOUT_EXECUTORS = RequestExecutors | KillExecutors | DecommissionExecutors
ORDERS = StartQuery | Rescale | FailQuery | CancelQuery | TakeSavepoint | ABOUT_EXECUTORS
FAILURES = st.builds(
    ev.Failure,
    error=st.sampled_from(["disk full", "no route to host"]),
    causes=st.sampled_from([("java.io.IOException",), ("org.apache.spark.sql.AnalysisException",)]),
    offsets=st.sampled_from(["", "[7]"]),
)


class Lives(RuleBasedStateMachine):
    """The shim's side: where each query is, which orders are open, how many partitions are in force.

    `fresh` are the queries of which the policy knows that their state was moved, and of no batch since.
    `excused` says that more may run than lower bounds allow: slots were lost since, or other bounds declared.
    `moves_since` is when the first of the open orders to move a query's state was given.
    """

    new_scene = Scene
    forgets = False

    def __init__(self) -> None:
        super().__init__()
        self.scene = self.new_scene()
        self.phase: dict[str, str] = {}
        self.facts: dict[str, ev.QueryFacts] = {}
        self.partitions: dict[str, int] = {}
        self.open: list[Action] = []
        self.failures: dict[str, ev.Failure] = {}
        self.fresh: set[str] = set()
        self.bounds: dict[str, tuple[int, int]] = {}
        self.changes: set[str] = set()
        self.excused = False
        self.moves_since: dict[str, int] = {}
        self.runs = 0

    @initialize(given=SETTINGS, cores=st.integers(0, 3))
    def begin(self, given: CoreSettings, cores: int) -> None:
        self.scene = self.new_scene(given)
        self.scene.start(*([cores] if cores else []))

    def send(self, kind: type[ev.Event], **fields: Any) -> None:
        before = self.scene.scheduler.slots.total
        actions = self.scene.send(kind, **fields)
        self.excused |= self.scene.scheduler.slots.total < before
        self.see(actions)

    def see(self, actions: tuple[Action, ...]) -> None:
        reported: set[str | None] = set()
        settled: set[str | None] = set()
        slots = self.scene.scheduler.slots.total
        for action in actions:
            match action:
                case Report(decision=decision):
                    assert decision.message
                    if decision.kind in ("rescale_state", "rescale_in_place"):
                        reported.add(decision.query)
                    if decision.reason in ("rescale_called_off", "rescaled_again"):
                        # Nothing is moved, or once more what was decided when there were slots.
                        reported.add(decision.query)
                        settled.add(decision.query)
                case Rescale():
                    assert action.query in reported, "a rescale without a reason"
                    assert action.query in settled or slots > 0, "rescaled without a slot to do it on"
                case HoldQuery():
                    assert action.message
                    self.hears_how_to_begin(action)
            self.take(action)
        # Whatever an event leads to, once it is through.
        self.check_moves_at_once()

    def take(self, action: Action) -> None:
        """Take an order, if it is one."""
        match action:
            case StartQuery():
                self.check_bounds(action)
            case Rescale():
                self.check_bounds(action)
                self.check_rescale(action)
        if isinstance(action, ORDERS):
            self.open.append(action)

    def check_moves_at_once(self) -> None:
        """Count the queries whose state what is ordered may move; each of them counts for ten minutes."""
        stopped = {order.query for order in self.open if isinstance(order, CancelQuery)}
        moving = {order.query for order in self.open if self.moves_state(order)} - stopped
        now = self.scene.now
        self.moves_since = {query: self.moves_since.get(query, now) for query in moving}
        recent = [query for query, since in self.moves_since.items() if now < since + PATIENCE_MS]
        assert len(recent) <= self.scene.settings.max_concurrent_rescales, "too many move at once"

    def moves_state(self, order: Action) -> TypeGuard[StartQuery | Rescale]:
        if not isinstance(order, StartQuery | Rescale) or order.query not in self.phase:
            return False
        if isinstance(order, StartQuery) and self.phase[order.query] != "held":
            return False  # what runs waits for no start, and after a failure nothing is moved
        facts = self.facts[order.query]
        in_force = self.partitions.get(order.query, facts.checkpoint_partitions)
        return facts.stateful and order.partitions is not None and in_force not in (None, order.partitions)

    def check_rescale(self, order: Rescale) -> None:
        facts = self.facts[order.query]
        assert order.cause in self.changes or not self.given_to(order.query).hands_off
        assert self.phase[order.query] == "running", "rescaled while it stands still"
        if facts.stateful:
            assert (facts.provider, facts.checkpoint_format) == ("rocksdb", 2)
            in_force = self.partitions[order.query]
            assert order.query not in self.fresh or order.partitions == in_force, "moved without a batch"

    def hears_how_to_begin(self, order: StartQuery | HoldQuery) -> None:
        if order.rescalable and self.phase.get(order.query) == "held":
            facts = self.facts[order.query]
            assert facts.stateful
            assert facts.checkpoint_partitions is None
            self.facts[order.query] = evolve(facts, provider="rocksdb", checkpoint_format=2)

    def check_bounds(self, action: StartQuery | Rescale) -> None:
        given = self.given_to(action.query)
        # What was due before the bounds changed is done first, by the old ones.
        held = given.mode == "adaptive" and not given.hands_off
        if held and isinstance(action, StartQuery) and action.cause not in self.changes:
            lower = self.needed(self.first_of_running(action.query))
            total = self.scene.scheduler.slots.total
            assert self.excused or total >= lower, "started below the lower bounds"
            self.excused |= self.needed_by("running", also=action.query) > total
        if action.partitions is not None:
            facts = self.facts[action.query]
            # After a failure it starts with what it had.
            if action.partitions == self.partitions.get(action.query):
                return
            assert action.cause in self.changes or 1 <= action.partitions <= given.max_parallelism
            assert action.partitions <= self.scene.scheduler.slots.total
            adaptive = given.mode == "adaptive"
            if action.cause in self.changes:
                return
            if adaptive and action.query in self.bounds and facts.query in self.scene.scheduler.queries:
                assert action.partitions <= self.bounds[action.query][1]
            elif facts.explicit_partitions is not None:
                assert given.explicit_parallelism != "fixed"
                if given.explicit_parallelism == "upperBound":
                    assert action.partitions <= facts.explicit_partitions

    def given_to(self, query: str) -> CoreSettings:
        """Return the settings of a query, its own or those of the application."""
        own = self.scene.scheduler._machines[query].record.settings
        return own or self.scene.settings

    def needed_by(self, *standings: str, also: str) -> int:
        """Add up the lower bounds of queries with some standing, and of one more."""
        machines = self.scene.scheduler._machines
        return self.needed([q for q, m in machines.items() if m.record.standing in standings or q == also])

    def first_of_running(self, query: str) -> list[str]:
        """Name the queries whose lower bounds come before those of one that starts, and that one itself.

        What starts again after a failure comes before those that run with a lower priority, and with it what
        shares its slots.
        """
        machines = self.scene.scheduler._machines
        again = [
            machine.record.requirements.priority
            for other, machine in machines.items()
            if machine.record.standing == "recovering"
            or (other == query and self.phase.get(query) == "failed")
        ]

        def comes_first(other: str) -> bool:
            record = machines[other].record
            return record.standing == "running" and record.requirements.priority >= max(again, default=-99)

        return [other for other in machines if other == query or comes_first(other)]

    def needed(self, queries: list[str]) -> int:
        """Add up the lower bounds of queries: within a group the largest counts."""
        groups: dict[str, int] = {}
        for query in queries:
            for vertex in self.scene.scheduler._machines[query].record.requirements.vertices:
                groups[vertex.group] = max(groups.get(vertex.group, 0), vertex.bounds.lower)
        return sum(groups.values())

    # The cluster

    @rule(executor=EXECUTORS, cores=st.integers(1, 4))
    def executor_comes(self, executor: str, cores: int) -> None:
        self.send(ev.ExecutorAdded, executor=executor, host="h", cores=cores)

    @rule(executor=EXECUTORS)
    def executor_goes(self, executor: str) -> None:
        self.send(ev.ExecutorRemoved, executor=executor)

    @rule(
        executor=EXECUTORS,
        kind=st.sampled_from([ev.ExecutorExcluded, ev.ExecutorUnexcluded, ev.ExecutorDecommissioning]),
    )
    def executor_changes(self, executor: str, kind: type[ev.Event]) -> None:
        self.send(kind, executor=executor)

    # Queries

    @rule(query=QUERIES, facts=FACTS)
    def submitted(self, query: str, facts: ev.QueryFacts) -> None:
        if query not in self.phase:
            self.runs += 1
            # The orders for a run of before find nobody.
            self.open = [order for order in self.open if getattr(order, "query", None) != query]
            self.facts[query] = evolve(facts, query=query, name=query)
            self.phase[query] = "held"
            self.send(ev.QuerySubmitted, facts=self.facts[query], run=f"r{query}")

    @precondition(lambda self: self.open)
    @rule(data=st.data(), well=st.sampled_from([True, True, True, False]))
    def order_is_answered(self, data: st.DataObject, well: bool) -> None:
        self.answer(data.draw(st.sampled_from(self.open)), well)

    def answer(self, order: Action, well: bool) -> None:
        self.open.remove(order)
        self.scene.now += 100
        match order:
            case StartQuery(query=query) if self.phase.get(query) in ("held", "failed"):
                # One that a process of before has ordered comes about, though this one would not order it.
                state = self.scene.scheduler._machines[query].record.state.name
                self.excused |= state == "WaitingForResources"
                self.hears_how_to_begin(order)
                if well and order.partitions is not None:
                    self.use(query, order.partitions)
                self.phase[query] = "running"  # and any other order to start it comes too late
                self.outcome(order, well)
                self.runs_now(query)
            case Rescale(query=query):
                self.answer_rescale(order, well)
            case FailQuery(query=query) if self.phase.get(query) in ("held", "failed"):
                self.outcome(order, well)
                if well:
                    self.ends(query, "boom")
                else:
                    self.excused = True
                    self.runs_now(query)
            case CancelQuery(query=query) if query in self.phase:
                # A stop that takes long is answered late, and the query ends all the same.
                self.outcome(order, well)
                self.ends(query, None)
            case TakeSavepoint(query=query, target=target) if well and query in self.phase:
                taken = {"path": f"{target}/savepoint", "batch": 7, "bytes": 1}
                self.send(ev.SavepointTaken, query=query, run=f"r{query}", action=order.id, **taken)
                self.outcome(order, well)
                if order.stop and self.phase.get(query) == "running":
                    self.ends(query, None)
            case RequestExecutors():
                self.outcome(order, well)  # who comes, comes by itself
            case KillExecutors(executors=executors) | DecommissionExecutors(executors=executors) if well:
                self.outcome(order, well)
                for executor in executors:
                    self.executor_goes(executor)
            case _:
                self.outcome(order, False)

    def answer_rescale(self, order: Rescale, well: bool) -> None:
        query = order.query
        runs = self.phase.get(query) == "running"
        older = self.rescales(query, before=order)
        if runs and older and self.facts[query].stateful:
            # It takes their place, and is still to be carried out.
            self.open.append(order)
            for replaced in older:
                self.open.remove(replaced)
                self.outcome(replaced, False)
            return
        for earlier in older:
            self.answer(earlier, well)
        if runs and well:
            self.use(query, order.partitions)
        self.outcome(order, runs and well)

    def rescales(self, query: str, before: Rescale | None = None) -> list[Rescale]:
        """Give the open ones of a query in their order."""
        found = [order for order in self.open if isinstance(order, Rescale) and order.query == query]
        found.sort(key=lambda order: int(order.id[1:]))
        return [order for order in found if before is None or int(order.id[1:]) < int(before.id[1:])]

    def use(self, query: str, count: int) -> None:
        """Bring another count into force; the policy is about to hear of it."""
        facts = self.facts[query]
        before = self.partitions.get(query, facts.checkpoint_partitions)
        if facts.stateful and before not in (None, count):
            self.fresh.add(query)
        self.partitions[query] = count

    def outcome(self, order: Action, well: bool) -> None:
        if well:
            self.send(ev.ActionDone, action=order.id, query=ordered_for(order), took_ms=100)
        else:
            self.send(ev.ActionFailed, action=order.id, query=ordered_for(order), error="no")

    def runs_now(self, query: str) -> None:
        self.phase[query] = "running"
        facts = self.facts[query]
        known = facts.checkpoint_partitions or facts.session_partitions
        count = self.partitions.setdefault(query, known)
        self.send(ev.QueryStarted, query=query, run=f"r{query}", partitions=count)

    @rule(query=QUERIES)
    def started_unasked(self, query: str) -> None:
        if self.phase.get(query) == "held":
            self.excused = True
            self.runs_now(query)

    @rule(query=QUERIES, duration_ms=st.integers(1, 20_000), later=st.integers(0, 3_000))
    def batch_is_committed(self, query: str, duration_ms: int, later: int) -> None:
        if self.phase.get(query) == "running":
            self.scene.now += later
            self.fresh.discard(query)
            self.see(self.scene.batch(duration_ms, self.partitions[query], query, f"r{query}"))

    @rule(query=QUERIES, rows=st.sampled_from([10, 1_000, 5_000]), behind=st.sampled_from([None, 0, 40_000]))
    def batches_are_committed(self, query: str, rows: int, behind: int | None) -> None:
        """As many as a policy needs to know what comes in; as it knows what each of them takes."""
        for _ in range(5):
            if self.phase.get(query) == "running":
                self.let_pass(1_500)
            if self.phase.get(query) == "running":
                self.fresh.discard(query)
                now, count = self.scene.now, self.partitions[query]
                took = 100 + rows // (1 + count)
                fields = {"input_rows": rows, "records_behind": behind, "duration_ms": took}
                self.send(
                    ev.QueryProgress, query=query, run=f"r{query}", batch=now, started=now - took,
                    partitions=count, **fields,
                )  # fmt: skip

    @rule(query=QUERIES, error=st.sampled_from([None, "boom"]))
    def query_ends(self, query: str, error: str | None) -> None:
        self.ends(query, error)

    def ends(self, query: str, error: str | None) -> None:
        if self.phase.pop(query, None) is not None:
            self.partitions.pop(query, None)
            self.failures.pop(query, None)
            self.fresh.discard(query)
            self.see(self.scene.terminated(query, error, f"r{query}"))

    @rule(query=QUERIES, failure=FAILURES, refused=st.booleans())
    def run_fails(self, query: str, failure: ev.Failure, refused: bool) -> None:
        """A rescale that has not been carried out is off, whether anybody says so or not."""
        if self.phase.get(query) == "running":
            pending = self.rescales(query)
            # A start that came too late is no answer to this failure.
            late = [order for order in self.open if isinstance(order, StartQuery) and order.query == query]
            self.open = [order for order in self.open if order not in (*pending, *late)]
            self.phase[query] = "failed"
            self.failures[query] = failure
            self.send(ev.QueryFailed, query=query, run=f"r{query}", failure=failure)
            for order in pending if refused else ():
                self.outcome(order, False)

    @rule(query=QUERIES, lower=st.integers(1, 3), more=st.integers(0, 4))
    def bounds_change(self, query: str, lower: int, more: int) -> None:
        most = self.scene.settings.max_parallelism
        bounds = (min(lower, most), min(lower + more, most))
        self.bounds[query] = bounds
        self.changes.add(f"s{len(self.scene.log) + 1}")
        machines = self.scene.scheduler._machines
        # What was due before the bounds changed is done first: this one may start by the old ones.
        before = [q for q, m in machines.items() if m.record.standing == "running" or q == query]
        self.send(ev.RequirementsRequested, query=query, bounds={"shuffle": bounds}, by="somebody")
        # Who runs is not stopped for bounds that do not fit any more.
        self.excused |= self.needed(before) > self.scene.scheduler.slots.total

    @rule(query=QUERIES, stop=st.booleans(), folder=st.sampled_from(["/savepoints", None]))
    def somebody_wants_a_savepoint(self, query: str, stop: bool, folder: str | None) -> None:
        self.send(ev.SavepointRequested, query=query, by="somebody", stop=stop, target=folder)

    @rule(query=QUERIES)
    def somebody_cancels(self, query: str) -> None:
        self.send(ev.CancelRequested, query=query, by="somebody")

    @rule(query=QUERIES, kind=st.sampled_from([ev.QueryTerminated, ev.QueryFailed, ev.QueryProgress]))
    def something_stray_comes(self, query: str, kind: type[ev.Event]) -> None:
        """Events that make no sense may be reported; they may not break anything."""
        fields: dict[str, Any] = {}
        if kind is ev.QueryFailed:
            fields = {"failure": ev.Failure(error="disk full")}
        if kind is ev.QueryProgress:
            fields = {"batch": 1, "started": self.scene.now, "duration_ms": 1, "partitions": 9}
        self.send(kind, query=query, run="r?", **fields)

    # What makes it likely that something is rescaled

    @rule(queries=st.lists(QUERIES, min_size=1, max_size=3), facts=FACTS, cores=st.integers(1, 4))
    def queries_run(self, queries: list[str], facts: ev.QueryFacts, cores: int) -> None:
        self.executor_comes("4", cores)
        for query in queries:
            self.submitted(query, facts)
        self.carry_out_all()

    @rule(lower=st.integers(1, 3), facts=FACTS, cores=st.integers(2, 4))
    def queries_with_bounds_begin(self, lower: int, facts: ev.QueryFacts, cores: int) -> None:
        """Together they need more than there may be."""
        self.executor_comes("4", cores)
        for query in ("q0", "q1", "q2"):
            self.bounds_change(query, lower, 1)
            self.submitted(query, facts)

    @precondition(lambda self: self.phase)
    @rule(more=st.booleans(), ms=st.sampled_from([100, 4_000, 30_000]))
    def slots_change(self, more: bool, ms: int) -> None:
        if more:
            self.executor_comes("3", 4)
        else:
            self.executor_goes("3")
            for query in self.phase:
                self.batch_is_committed(query, 300, 400)
        self.let_pass(ms)

    # Time and the policy process

    @rule(ms=st.integers(1, 10_000))
    def time_passes(self, ms: int) -> None:
        self.let_pass(ms)

    def let_pass(self, ms: int) -> None:
        before = len(self.scene.log)
        self.scene.advance(ms)
        for _, actions in self.scene.log[before:]:
            for action in actions:
                self.take(action)

    @rule()
    def nothing_is_blocked(self) -> None:
        """When orders are carried out and time passes, every query gets somewhere."""
        self.carry_out_all()
        self.nobody_waits_in_vain()

    def carry_out_all(self) -> None:
        for _ in range(30):
            while self.open:
                self.answer(self.open[0], True)
            if all(phase == "running" for phase in self.phase.values()):
                return
            self.let_pass(60_000)

    def nobody_waits_in_vain(self) -> None:
        for query, phase in self.phase.items():
            record = self.scene.scheduler._machines[query].record
            short = self.scene.scheduler.slots.total < self.needed_by("running", also=query)
            waits = short and record.state.name == "WaitingForResources"
            assert waits or (phase == "running" and record.state.name == "Executing"), record.state
            # A copy of which nobody has heard the end keeps nothing from happening.
            orders = {order.kind for order in record.orders.values()} - {"savepoint"}
            in_force = record.target is None and not orders
            assert waits or in_force, record

    @rule()
    def timers_are_late(self) -> None:
        self.scene.now += 4_000

    @rule()
    def policy_is_started_anew(self) -> None:
        """A new process, which knows what the snapshot says and nothing else."""
        self.scene.check()
        world = self.world()
        self.open.clear()
        self.changes.clear()
        self.excused = True
        self.bounds.clear()  # requests are nowhere written down
        self.fresh.update(query for query, phase in self.phase.items() if phase != "held")
        self.scene = self.new_scene(self.scene.settings, self.scene.now)
        self.send(ev.Snapshot, **world)

    def world(self) -> dict[str, Any]:
        """Give what a snapshot shows."""
        queries = [
            ev.QueryInfo(
                facts=self.facts[query],
                run=f"r{query}",
                phase=phase,  # type: ignore[arg-type]
                partitions=self.partitions.get(query),
                failure=self.failures.get(query) if phase == "failed" else None,
            )
            for query, phase in self.phase.items()
        ]
        return snapshot(self.scene.scheduler.slots.executors.values(), queries)

    # What always holds

    @invariant()
    def all_is_sound(self) -> None:
        self.scene.scheduler.validate()

    @invariant()
    def no_move_is_forgotten(self) -> None:
        """While the state of a query may be moved, it does not count as one that merely runs."""
        for query in () if self.forgets else self.phase:
            machine = self.scene.scheduler._machines[query]
            if machine.record.state.name == "Executing" and machine.record.facts.stateful:
                assert not self.rescales(query)

    @invariant()
    def nobody_waits_for_what_is_there(self) -> None:
        for query in self.phase:
            given = self.given_to(query)
            if given.submission_stabilization_ms > 0 and not given.hands_off:
                continue
            machine = self.scene.scheduler._machines[query]
            needed = self.needed_by("running", "recovering", also=query)
            due = machine.record.state.due
            if due is not None and due <= self.scene.now:
                continue  # a wait that has become shorter ends with its timer, which fires next
            if given.hands_off or self.scene.scheduler.slots.total >= needed:
                assert machine.record.state.name != "WaitingForResources"

    @invariant()
    def what_is_declared_adds_up(self) -> None:
        """The lower bounds of what runs fit into the slots, unless these were lost meanwhile."""
        total = self.scene.scheduler.slots.total
        all_given = [self.scene.settings, *map(self.given_to, self.scene.scheduler._machines)]
        if self.needed_by("running", also="") <= total:
            self.excused = False
        else:
            assert self.excused or any(one.hands_off or one.mode == "reactive" for one in all_given)

    @invariant()
    def shares_add_up_to_no_more_than_there_is(self) -> None:
        used: dict[str, int] = {}
        total = self.scene.scheduler.slots.total
        for machine in self.scene.scheduler._machines.values():
            record = machine.record
            if record.standing is not None and record.share.suffices:
                assert record.requirements.lower <= record.share.slots <= total
                vertex = record.requirements.shuffle
                most = vertex.parallelism(record.share.slots)
                used[vertex.group] = max(used.get(vertex.group, 0), most)
        assert sum(used.values()) <= total

    def teardown(self) -> None:
        self.scene.check()
        seen(self.scene)


Lives.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    # Explaining a failure takes longer than a test may: what is found is printed as soon as it is small.
    phases=[phase for phase in Phase if phase is not Phase.explain],
)
TestLives = Lives.TestCase
