"""Random lives of executors, bounds and queries, with a stand-in for the shim that answers late or badly."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from spark_elastic.core import events as ev
from spark_elastic.core.actions import Action, StartQuery
from spark_elastic.core.bounds.declared import WantedSharing
from spark_elastic.core.failures.strategy import ExponentialDelay, FailureRate, FixedDelay, NoRestart
from spark_elastic.core.keys.periods import ExcludedPeriod, Window
from spark_elastic.core.settings import CoreSettings
from tests.model.checked import Checked
from tests.unit.core.builder import OLD, PREPARED, STATEFUL, STATELESS

pytestmark = pytest.mark.long

EXECUTORS = st.sampled_from("01234")
QUERIES = st.sampled_from(["q0", "q1", "q2"])
FACTS = st.sampled_from(
    [
        STATEFUL,
        STATELESS,
        OLD,
        PREPARED,
        evolve(OLD, prepares_moves=True),
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
    max_copy_tasks=st.sampled_from([None, 1, 3]),
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
    policy=st.sampled_from([("declared",), ("autoscale",), ("schedule",), ("schedule", "autoscale")]),
    schedule_windows=st.sampled_from(
        [
            (),
            (Window(cron="* * * * *", duration_ms=60_000, lower=2, upper=3, min_executors=2),),
            (
                Window(cron="*/3 * * * *", duration_ms=60_000, upper=1),
                Window(cron="1-59/3 * * * *", duration_ms=90_000, lower=4),
            ),
        ]
    ),
    schedule_excluded=st.sampled_from([(), (), (ExcludedPeriod(cron="*/4 * * * *", duration_ms=60_000),)]),
    schedule_lead_ms=st.sampled_from([None, 20_000]),
    scale_down_window_ms=st.sampled_from([0, 5_000, 300_000]),
    target_load=st.sampled_from([0.1, 0.75]),
    max_lag_ms=st.sampled_from([None, 2_000]),
    min_executors=st.sampled_from([0, 0, 3]),
    max_executors=st.sampled_from([None, None, 3]),
)


FAILURES = st.builds(
    ev.Failure,
    error=st.sampled_from(["disk full", "no route to host"]),
    causes=st.sampled_from([("java.io.IOException",), ("org.apache.spark.sql.AnalysisException",)]),
    offsets=st.sampled_from(["", "[7]"]),
)


class Lives(Checked):
    """Lives of an application: each rule is something that can happen at any time."""

    @initialize(given=SETTINGS, cores=st.integers(0, 3))
    def begin(self, given: CoreSettings, cores: int) -> None:
        self.scene = self.new_scene(given)
        self.scene.start(*([cores] if cores else []))

    # Executors

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
            # Orders for an earlier run reach no query.
            self.open = [order for order in self.open if getattr(order, "query", None) != query]
            self.facts[query] = evolve(facts, query=query, name=query)
            self.phase[query] = "held"
            self.send(ev.QuerySubmitted, facts=self.facts[query], run=f"r{query}")

    @precondition(lambda self: self.open)
    @rule(data=st.data(), well=st.sampled_from([True, True, True, False]))
    def order_is_answered(self, data: st.DataObject, well: bool) -> None:
        self.answer(data.draw(st.sampled_from(self.open)), well)

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
        """Commit enough micro-batches for a policy to know the arrival rate and the duration of each."""
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

    @rule(query=QUERIES, failure=FAILURES, refused=st.booleans())
    def run_fails(self, query: str, failure: ev.Failure, refused: bool) -> None:
        """A failure cancels a rescale that was not carried out, whether or not the shim reports that."""
        if self.phase.get(query) == "running":
            pending: list[Action] = [*self.rescales(query), *self.ordered_copies(query)]
            self.copies.pop(query, None)
            # A start that came too late does not answer this failure.
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
        self.declare(query, bounds, ev.RequirementsRequested, bounds={"shuffle": bounds})

    @rule(query=QUERIES)
    def bounds_are_taken_back(self, query: str) -> None:
        """The configured bounds can be wider than the requested ones."""
        self.declare(query, (1, self.scene.settings.max_parallelism), ev.RequirementsDropped)

    def declare(self, query: str, now: tuple[int, int], kind: type[ev.Event], **fields: Any) -> None:
        """Change the bounds of a query by such an event."""
        self.bounds[query] = now
        self.taken_back = (
            self.taken_back | {query} if kind is ev.RequirementsDropped else self.taken_back - {query}
        )
        self.changes.add(f"s{len(self.scene.log) + 1}")
        machines = self.scene.scheduler._machines
        # Actions that were pending before the bounds changed come first: a start may follow the old bounds.
        before = [q for q, m in machines.items() if m.record.standing == "running" or q == query]
        self.send(kind, query=query, by="somebody", **fields)
        # A running query is not stopped when the new bounds no longer fit.
        self.excused |= self.needed(before) > self.scene.scheduler.slots.total

    @rule(query=QUERIES, stop=st.booleans(), folder=st.sampled_from(["/savepoints", None]))
    def somebody_wants_a_savepoint(self, query: str, stop: bool, folder: str | None) -> None:
        self.send(ev.SavepointRequested, query=query, by="somebody", stop=stop, target=folder)

    @rule(query=QUERIES)
    def somebody_cancels(self, query: str) -> None:
        self.send(ev.CancelRequested, query=query, by="somebody")

    @rule(query=QUERIES, kind=st.sampled_from([ev.QueryTerminated, ev.QueryFailed, ev.QueryProgress]))
    def something_stray_comes(self, query: str, kind: type[ev.Event]) -> None:
        """Events that make no sense may be reported, but they must not break anything."""
        fields: dict[str, Any] = {}
        if kind is ev.QueryFailed:
            fields = {"failure": ev.Failure(error="disk full")}
        if kind is ev.QueryProgress:
            fields = {"batch": 1, "started": self.scene.now, "duration_ms": 1, "partitions": 9}
        self.send(kind, query=query, run="r?", **fields)

    # Rules that make a rescale likely

    @rule(queries=st.lists(QUERIES, min_size=1, max_size=3), facts=FACTS, cores=st.integers(1, 4))
    def queries_run(self, queries: list[str], facts: ev.QueryFacts, cores: int) -> None:
        self.executor_comes("4", cores)
        for query in queries:
            self.submitted(query, facts)
        self.carry_out_all()

    @rule(lower=st.integers(1, 3), facts=FACTS, cores=st.integers(2, 4))
    def queries_with_bounds_begin(self, lower: int, facts: ev.QueryFacts, cores: int) -> None:
        """Their lower bounds may add up to more slots than the application has."""
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

    @rule()
    def nothing_is_blocked(self) -> None:
        """When orders are carried out and time passes, every query makes progress."""
        self.carry_out_all()
        self.nobody_waits_in_vain()

    @rule()
    def timers_are_late(self) -> None:
        self.scene.now += 4_000

    @rule()
    def policy_is_started_anew(self) -> None:
        """Start a new process, which knows only the snapshot."""
        self.scene.check()
        world = self.world()
        self.open.clear()
        self.changes.clear()
        self.excused = True
        self.bounds.clear()  # this process keeps no journal, so requests are lost
        self.fresh.update(query for query, phase in self.phase.items() if phase != "held")
        self.scene = self.new_scene(self.scene.settings, self.scene.now)
        self.send(ev.Snapshot, **world)


Lives.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    # Explaining a failure takes longer than a test may take; the shrunk example is printed without it.
    phases=[phase for phase in Phase if phase is not Phase.explain],
)
TestLives = Lives.TestCase
