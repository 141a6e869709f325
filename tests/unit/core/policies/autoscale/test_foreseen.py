"""Tests that a micro-batch that will take too long counts as it begins, and no other one does."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from spark_elastic.core.events import BatchPlanned, Failure, QueryFailed, QueryIdle, QueryProgress
from spark_elastic.core.load.pace import Batch
from spark_elastic.core.policies.autoscale.wishes import Autoscale
from spark_elastic.core.policies.memory import QueryMemory
from spark_elastic.core.policies.planner import query_metrics
from spark_elastic.core.policies.policy import QueryWish
from spark_elastic.core.policies.view import QueryMetrics, Running, Wanted
from tests.unit.core.policies.seen import NOW, batches, query, view, work
from tests.unit.core.policies.world import World

STEADY = batches(9, 1_200, 4)  # 400 ms of each second


def wish(one: QueryMetrics, **fields: Any) -> QueryWish:
    return Autoscale().decide(view(one, **fields)).queries["q"]


def runs(rows: int | None, *, since_ms: int = 0, gap_ms: int | None = 1_000, **fields: Any) -> Running:
    return Running(at=NOW - since_ms, slots=4, input_rows=rows, gap_ms=gap_ms, **fields)


def test_a_flood_is_answered_as_its_first_batch_begins() -> None:
    calm, flooded = wish(query(STEADY)), wish(query(STEADY, running=runs(8_000)))
    assert calm.slots == 4
    assert flooded.reason == "autoscale_up"
    assert flooded.slots > 2 * calm.slots
    assert flooded.outlook is not None
    assert flooded.outlook.rows_per_second == pytest.approx(8_000)


@pytest.mark.parametrize(
    "running",
    [
        runs(1_300),
        runs(3_000),  # as long as its interval, at most
        runs(None),
        runs(0),
        runs(8_000, gap_ms=None),
        runs(1_200, since_ms=900),
    ],
)
def test_a_batch_that_is_not_too_long_or_of_unknown_size_changes_nothing(running: Running) -> None:
    without, found = query(STEADY), query(STEADY, running=running)
    assert wish(found) == wish(without)


def test_the_backlog_counts_that_grows_until_executors_could_be_there() -> None:
    running = runs(8_000)
    hurried = {"max_lag_ms": 30_000}
    soon, late = (
        wish(query(STEADY, running=running, settings=hurried), startups_ms=(ms,)).slots
        for ms in (1_000, 120_000)
    )
    assert late > soon


def test_a_long_batch_is_no_reason_to_go_down() -> None:
    low = (Wanted(at=0, last=NOW, slots=2),)
    shrunk = query(batches(6, 1_000, 8), wanted=low)
    assert wish(shrunk).reason == "autoscale_down"
    assert wish(evolve(shrunk, running=runs(9_000))).slots >= 8


def test_what_does_not_help_is_known_from_the_batches_before() -> None:
    skew = work(run_ms=4_000, longest_ms=900, median_ms=20)
    held_up = tuple(evolve(one, duration_ms=950, work=skew) for one in batches(9, 1_200, 4))
    found = wish(query(held_up, running=runs(8_000)))
    assert (found.slots, found.reason) == (5, "autoscale_skew")


def test_a_batch_far_larger_than_any_before_counts_with_what_the_line_can_tell() -> None:
    tiny = batches(9, 50, 4)  # ten times as many rows take 225 ms
    assert wish(query(tiny, running=runs(100_000))).slots == 4


def test_nothing_is_foreseen_from_one_batch_unless_it_took_far_too_long() -> None:
    first = batches(1, 1_200, 4)
    assert wish(query(first, running=runs(8_000))).slots == 4
    far = batches(1, 12_000, 4)
    assert wish(query(far, running=runs(12_000, gap_ms=3_100))).slots > 4


def test_a_first_batch_that_does_not_end_gets_more_slots_while_it_runs() -> None:
    unknown = query((), running=runs(8_000, since_ms=900, gap_ms=None))
    early = wish(unknown)
    assert (early.slots, early.until) == (4, NOW + 100), "it is looked at again when an interval has passed"
    late = wish(evolve(unknown, running=runs(8_000, since_ms=2_100, gap_ms=None)))
    assert (late.slots, late.reason) == (8, "autoscale_first_batch")
    # After a rest the rate is known from the first batch on, and how long it has run is the least it takes.
    rested = wish(query((), running=runs(8_000, since_ms=2_100)))
    assert rested.slots > 8


def planned(memory: QueryMemory, at: int, before: int | None = None, **fields: Any) -> Running | None:
    event = BatchPlanned(**{"id": "s1", "at": at, "query": "q", "run": "r", "batch": 1, **fields})
    memory.planned(event, at, before, interval_ms=1_000, slots=2)
    return memory.running


def test_the_rows_of_a_batch_have_arrived_since_the_one_before_or_in_an_interval_of_a_rest() -> None:
    memory = QueryMemory()
    assert planned(memory, 10_000, 7_000, input_rows=5) == Running(
        at=10_000, slots=2, input_rows=5, gap_ms=3_000
    )
    assert planned(memory, 10_000, None, input_rows=5, records_behind=7) == Running(
        at=10_000, slots=2, input_rows=5, behind=7
    )
    memory.rested(11_000)
    assert memory.running is None
    found = planned(memory, 11_200, 7_000, input_rows=5)
    assert found is not None
    assert found.gap_ms == 1_000
    assert planned(QueryMemory(), 1, None, input_rows=0) is None, "it only removes old state"


def test_a_batch_that_got_more_slots_counts_with_their_mean_over_its_time() -> None:
    memory = QueryMemory(run="r")
    planned(memory, 10_000, input_rows=5)
    memory.runs_with(13_000, 6, 6)
    progress = QueryProgress(
        id="s2", at=14_000, query="q", run="r", batch=1, started=10_000, duration_ms=4_000, partitions=6
    )
    memory.batch(progress, batch_on(6), 14_000)
    assert [one.slots for one in memory.samples] == [3], "2 slots for 3 s, 6 for 1 s"
    assert memory.running is None


def batch_on(slots: int) -> Batch:
    return Batch(duration_ms=4_000, gap_ms=1_000, input_rows=5, partitions=6, slots=slots)


def test_executors_come_sooner_for_a_flood_than_without_it() -> None:
    def came(told: bool) -> int:
        world = World(told_plans=told)
        world.start(2)
        world.query(lambda second: 1_000 if second < 300 else 12_000)
        world.run(400)
        world.scene.check()
        return next(second for second, executors, _ in world.seen if executors > 2)

    # The first batch of the flood takes 14 s.
    assert came(told=True) <= came(told=False) - 13


def test_a_batch_that_leaves_far_more_than_it_reads_counts_too() -> None:
    hurried = {"max_lag_ms": 30_000}
    told = batches(9, 1_200, 4, behind=0)
    limited = wish(query(told, running=runs(2_000, behind=200_000), settings=hurried))
    assert limited.slots > wish(query(told, settings=hurried)).slots == 4


def test_a_query_is_not_idle_while_a_batch_runs() -> None:
    world = World()
    world.start(4)
    world.query(lambda _: 0)
    world.run(20)
    scheduler, run = world.scene.scheduler, world.scene.query("q").run

    def is_idle() -> bool:
        record, memory = scheduler._machines["q"].record, scheduler._planner._memories["q"]
        return query_metrics(record, memory, scheduler.settings).idle

    world.take(world.scene.send(QueryIdle, query="q", run=run))
    assert is_idle()
    world.take(world.scene.send(BatchPlanned, query="q", run=run, batch=1, input_rows=5))
    assert not is_idle()
    world.take(world.scene.send(QueryFailed, query="q", run=run, failure=Failure(error="disk full")))
    assert scheduler._planner._memories["q"].running is None
