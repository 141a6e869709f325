"""Tests that known complaints about other autoscalers do not apply here; each one names its source."""

from __future__ import annotations

import math
from typing import Any

import pytest
from attrs import evolve

from spark_elastic.core.actions import DecommissionExecutors, KillExecutors, RequestExecutors
from spark_elastic.core.events import ExecutorUsage, FullestPartition, OffsetsBehind
from spark_elastic.core.policies.autoscale.wishes import Autoscale
from spark_elastic.core.policies.policy import QueryWish, Wish
from spark_elastic.core.policies.view import QueryMetrics, Wanted
from spark_elastic.core.reasons.catalogue import message
from tests.unit.core.builder import STATEFUL
from tests.unit.core.policies.seen import NOW, batches, query, sample, view, work
from tests.unit.core.policies.test_planner import keeps, wants
from tests.unit.core.policies.world import SETTINGS, Source, World

WHOLE_WINDOW = (Wanted(at=NOW - 400_000, last=NOW - 1, slots=1),)


def wish(metrics: QueryMetrics, **fields: Any) -> QueryWish:
    return Autoscale().decide(view(metrics, query(query="other"), **fields)).queries["q"]


def test_incomplete_metrics_are_not_zero() -> None:
    """FLINK-39925, apache/flink-kubernetes-operator#1136 and #1139: they led to a wrong scale-down."""
    for known in ((), (sample(gap_ms=None),), (sample(gap_ms=None, input_rows=0),)):
        found = wish(query(known, granted=8, wanted=WHOLE_WINDOW))
        assert (found.slots, found.reason) == (8, "autoscale_measuring")


def test_an_idle_query_ends_no_decision_of_others() -> None:
    """FLINK-39890, apache/flink-kubernetes-operator#1134: a rate of zero aborted the whole pass."""
    nothing = tuple(sample(number, input_rows=0, duration_ms=0, behind=0) for number in range(5))
    busy = evolve(query(batches(5, 4_000, 4)), query="busy")
    wishes = Autoscale().decide(view(query(nothing), busy)).queries
    assert wishes["busy"].slots > 4
    assert wishes["q"].slots == 4


def test_a_step_is_judged_by_what_was_applied() -> None:
    """FLINK-39743, apache/flink-kubernetes-operator#1127: good steps were marked as ineffective."""
    # 16 slots were granted and 8 arrived, which is faster than 4: nothing is taken back.
    applied = query(batches(5, 8_000, 8), earlier=batches(4, 8_000, 4), granted=16)
    assert wish(applied).reason != "autoscale_made_worse"
    assert wish(applied).slots >= 13


def test_a_fixed_part_does_not_shrink_with_slots() -> None:
    """FLINK-30571, apache/flink-kubernetes-operator#966: a linear rule stops short and has to scale again."""
    varied = tuple(one for rows in (500, 1_000, 2_000) for one in batches(4, rows, 4, fixed=400))
    found = wish(query(batches(8, 2_000, 4, fixed=400), earlier=varied))
    # 2000 rows in the remaining 350 ms take 6 slots; a linear rule would compute 900 ms · 4 / 750 ms, so 5.
    assert found.slots == 6


def test_a_lag_that_grows_is_reason_enough() -> None:
    """FLINK-33306, apache/flink-kubernetes-operator#686: slow fetchers looked idle."""
    # The measurements say that 4 slots are enough, but the backlog grows with each micro-batch.
    behind = batches(6, 900, 4, fixed=900, row=0.01, behind=100_000, grows=5_000, interval=950)
    limited = evolve(query(behind, interval=950), earlier=batches(4, 5_000, 4, fixed=10, row=0.01))
    assert wish(limited).slots > 4


def test_one_hot_partition_is_named_and_gets_no_executors() -> None:
    """FLINK-30652, apache/flink-kubernetes-operator#505: a mean hides skew, and more workers do not help."""
    hot = OffsetsBehind(avg=10_000.0, max=90_000, min=0)
    fullest = FullestPartition(name="words-2", rows=91_000, all_rows=101_000, partitions=10)
    found = wish(query(batches(6, 1_000, 4, behind=100_000, offsets_behind=hot, fullest=fullest)))
    assert (found.slots, found.reason) == (4, "autoscale_hot_partition")
    said = message(found.reason, **found.told, after=4)
    assert "90 % of the waiting rows are in partition words-2 of a source" in said


def test_one_key_that_has_most_of_the_rows_is_named_and_gets_no_executors() -> None:
    """FLINK-30652, apache/flink-kubernetes-operator#505: the same behind a shuffle."""
    hot = work(run_ms=1_200, longest_ms=1_000, median_ms=20)
    found = wish(query(batches(6, 4_000, 4, work=hot)))
    assert (found.slots, found.reason) == (4, "autoscale_skew")
    said = message(found.reason, **found.told, slots=4, before=4, after=found.slots)
    assert "Spread the key or partition with most rows" in said
    assert "1 s of each micro-batch" in said


def test_nothing_is_scaled_down_while_it_catches_up() -> None:
    """FLINK-31318, apache/flink-kubernetes-operator#544: scaling down during catch-up made the lag longer."""
    samples = batches(6, 2_000, 8, behind=50_000, grows=-1_000)
    draining = query(samples, wanted=WHOLE_WINDOW, granted=8)
    found = wish(draining)
    assert (found.slots, found.reason) == (8, "autoscale_draining")
    assert found.told["gone_in_ms"]


def test_there_is_advice_before_a_window_is_full() -> None:
    """FLINK-31684, apache/flink-kubernetes-operator#606: nothing was shown for twenty minutes."""
    found = wish(query(batches(2, 4_000, 4)))
    assert found.slots > 4
    assert found.told["rows_per_second"]


def test_a_step_up_has_no_limit() -> None:
    """apache/flink-kubernetes-operator#581: a jump from 1 to 500 was needed, and a limit forbade it."""
    first = sample(0, gap_ms=None, input_rows=0, duration_ms=100, slots=1, partitions=1)
    flooded = sample(5, gap_ms=5_000, input_rows=500_000, duration_ms=500_000, slots=1, partitions=1)
    assert wish(query((first, flooded), interval=5_000)).slots > 100


def test_where_a_quota_does_not_allow_all_as_much_as_fits_is_taken() -> None:
    """apache/flink-kubernetes-operator#789: a refusal discarded the whole change."""
    world = World(evolve(SETTINGS, max_executors=4))
    world.start(2)
    world.query(lambda second: 1_000 if second < 100 else 20_000)
    world.run(300)
    assert world.executors == 4
    assert any("spark.elastic.maxExecutors allows 4." in said for said in world.said())


def test_executors_are_filled() -> None:
    """FLINK-34563, apache/flink-kubernetes-operator#787: slots of the last worker were left empty."""
    one = Autoscale().decide(view(query(batches(6, 4_000, 4, interval=1_000)), usual_slots=4))
    assert one.queries["q"].slots == 8
    assert wish(query(batches(6, 4_000, 4, interval=1_000)), usual_slots=4).slots == 6


def test_a_source_that_tells_no_backlog_is_scaled_by_its_batches() -> None:
    """delta-io/delta#2740."""
    world = World()
    world.start(2)
    world.query(lambda _: 4_000, told_behind=False)
    world.run(600)
    assert world.executors in (5, 6)


def test_the_target_does_not_flutter() -> None:
    """dask/dask-kubernetes#633 and #674, kedacore/keda#1482."""
    world = World(startup_ms=60_000)
    world.start(2)
    world.query(lambda second: 4_000 + 400 * ((int(second) * 7919) % 11 - 5) / 5)
    world.run(1_800)
    asked = [action.total for action in world.scene.actions if isinstance(action, RequestExecutors)]
    late = [total for at, total, _ in world.seen if at > 600]
    assert len(asked) <= 4
    assert max(late) - min(late) <= 1


def test_executors_that_died_are_requested_again() -> None:
    """apache/spark#42058, apache/spark#19812."""
    world = World()
    world.start(2)
    world.query(lambda _: 4_000)
    world.run(400)
    before = world.executors
    for executor in list(world.scene.scheduler.slots.executors):
        world.take(world.scene.lose(executor))
    world.run(120)
    assert world.executors == before


def test_what_came_in_is_judged_and_not_how_many_rows_lie_there() -> None:
    """kedacore/keda#1983: any lag led to the maximum."""
    # 12 s of input are waiting: 10 slots would clear them at once, but ten minutes are allowed.
    found = wish(query(batches(6, 1_000, 4, behind=12_000)))
    assert found.slots == 4


def test_the_most_is_reached() -> None:
    """kedacore/keda#2908: it stayed one below the maximum."""
    world = World(evolve(SETTINGS, max_parallelism=7))
    world.start(3)
    world.query(lambda second: 2_000 if second < 100 else 15_000)
    world.run(600)
    assert world.executors == 7


def test_a_decision_says_why_with_numbers() -> None:
    """Flink's scaling report, Druid's simulation endpoint: decisions were opaque."""
    numbers = wish(query(batches(6, 4_000, 4))).told
    told = {"rows_per_second", "batch_ms", "fixed_ms", "row_us", "load_percent", "confidence"}
    assert told <= numbers.keys()


def test_a_first_batch_that_takes_too_long_is_not_waited_out() -> None:
    """apache/flink-kubernetes-operator#581: the first action came twenty minutes after the start."""
    first = sample(gap_ms=None, duration_ms=30_000)
    found = wish(query((first,), interval=5_000))
    assert (found.slots, found.reason) == (8, "autoscale_first_batch")
    assert wish(query((first,), interval=5_000, granted=8)).slots == 8, "once for each batch"
    assert wish(query((evolve(first, duration_ms=6_000),), interval=5_000)).slots == 4


def test_a_day_of_changing_load_hardly_moves_state() -> None:
    """apache/flink-kubernetes-operator#875, #920 and #922: more than twenty rescales a day for each job."""
    world = World(evolve(SETTINGS, scale_down_window_ms=60_000))
    world.start(2)
    facts = evolve(STATEFUL, query="q", name="q", trigger_ms=5_000)
    world.add(Source(facts, lambda second: 2_500 + 1_500 * math.sin(second / 400)))
    world.run(7_200)
    executors = [total for at, total, _ in world.seen if at > 600]
    assert max(executors) - min(executors) >= 2, "executors follow the load"
    assert world.scene.query("q").rescaled <= 1
    world.scene.check()


@pytest.mark.parametrize("partitions", [7, 13, 31, 61, 127])
def test_a_number_of_partitions_never_vetoes_and_never_overshoots(partitions: int) -> None:
    """FLINK-39299, apache/flink-kubernetes-operator#1088 and #1179: worst where the number was prime."""
    busy = query(batches(6, 4_000, 4), partitions=partitions, facts=evolve(STATEFUL, trigger_ms=1_000))
    # 4000 rows, in the 650 ms that a fixed part of 100 ms leaves, keep 6.2 slots busy.
    found = wish(busy)
    assert found.reason == "autoscale_up"
    assert 6 <= found.slots <= 1.5 * 6.2 + 1
    idle = evolve(busy, samples=batches(6, 500, 4), wanted=WHOLE_WINDOW)
    assert wish(idle).slots < 4, "a way down is not cancelled"


def test_slots_of_less_than_a_core_are_seen_in_what_batches_take() -> None:
    """apache/flink-kubernetes-operator#586: with less than one CPU per slot, a measured rate was too high."""
    whole, half = (wish(query(batches(6, 1_500, 4, row=row), partitions=64)).unsmoothed for row in (1.2, 2.4))
    assert whole == 3
    assert half in (6, 7)


def test_one_noisy_batch_marks_no_step_as_ineffective() -> None:
    """apache/flink-kubernetes-operator#594: the detection was so unstable that it is off by default."""
    before, after = batches(4, 3_000, 4), batches(5, 3_000, 8)
    noisy = (*after[:-1], evolve(after[-1], duration_ms=9_000))
    assert wish(query(noisy, earlier=before, granted=8)).reason != "autoscale_made_worse"


def test_rows_that_come_with_some_batches_only_are_taken_in_the_mean() -> None:
    """FLINK-34266, apache/flink-kubernetes-operator#774: rates per second fail where rows come in bursts."""
    samples = batches(12, 4_000, 4)
    files = tuple(
        evolve(one, input_rows=0, duration_ms=100) if number % 4 else one
        for number, one in enumerate(samples)
    )
    found = wish(query(files))
    assert float(found.told["rows_per_second"]) <= 1_100
    assert found.slots == 4


def test_a_query_short_of_memory_gets_no_executors_and_is_told_so() -> None:
    """FLINK-33764, apache/flink-kubernetes-operator#726: garbage collection led to more and more workers."""
    for short in (work(gc_ms=500), work(spilled_bytes=60_000_000)):
        found = wish(query(batches(6, 4_000, 4, work=short)))
        assert (found.slots, found.reason) == (4, "autoscale_memory")
        said = message(found.reason, **found.told, slots=4, before=4, after=found.slots)
        assert "tasks lack memory, not cores" in said
    assert wish(query(batches(6, 4_000, 4, work=work(gc_ms=50)))).slots > 4


def test_slots_that_made_no_batch_faster_are_given_back() -> None:
    """FLINK-33764: the same without metrics of garbage collection, as for queries without a shuffle."""
    slow = evolve(query(batches(6, 3_000, 8, row=4.0), earlier=batches(4, 3_000, 4)), granted=8)
    found = wish(slow)
    assert (found.slots, found.reason) == (4, "autoscale_made_worse")


def test_a_sink_that_is_the_limit_gets_no_executors() -> None:
    """kedacore/keda#7092: throughput fell after a step up, since the sink could not keep up."""
    slower = evolve(query(batches(6, 3_000, 8, fixed=900), earlier=batches(4, 3_000, 4)), granted=8)
    assert wish(slower).reason == "autoscale_made_worse"
    assert wish(slower).slots == 4


def test_a_pause_is_what_was_measured() -> None:
    """FLINK-34178, apache/flink-kubernetes-operator#759 and #711: restarts were measured wrongly."""
    known = query(
        batches(6, 1_000, 4), facts=evolve(STATEFUL, trigger_ms=1_000), pauses_ms=(2_000, 9_000, 4_000)
    )
    assert wish(known).told["pause_ms"] == 4_000


def test_tasks_ask_for_no_executors() -> None:
    """opensearch-spark#302 and #324: tiny micro-batches requested executors that were never released."""
    tiny = batches(6, 100, 4, fixed=50, row=0.1)
    found = wish(query(tiny, partitions=200, wanted=WHOLE_WINDOW))
    assert found.slots < 4


def test_where_slots_do_not_help_it_says_which_setting_would() -> None:
    """apache/spark#16993: the interval is fixed, and nothing told users to change it."""
    limited = wish(query(batches(8, 1_000, 4, behind=50_000, grows=3_000, interval=1_000)))
    assert limited.reason == "autoscale_admission"
    said = message(limited.reason, **limited.told, slots=1, before=4, after=limited.slots)
    assert "maxOffsetsPerTrigger" in said
    assert "interval" in said


def test_no_more_than_a_part_goes_at_once_and_those_that_hold_least() -> None:
    """apache/spark#32766, #41076, #30789, #30812 and #50612: a removal flooded the network, or lost state."""
    world = World(evolve(SETTINGS, scale_down_window_ms=10_000))
    world.start(10)
    world.query(lambda _: 200)
    for number in range(1, 11):
        usage = {"executor": str(number - 1), "cached_bytes": 1_000 * number, "shuffle_bytes": 0}
        world.take(world.scene.send(ExecutorUsage, **usage))
    world.run(240)
    rounds = [
        one.executors for one in world.scene.actions if isinstance(one, KillExecutors | DecommissionExecutors)
    ]
    assert len(rounds) >= 2
    assert len(rounds[0]) <= 6, "at most scaleDownMaxFactor of them"
    gone = [executor for each in rounds for executor in each]
    assert gone == sorted(gone, key=int), "what holds least goes first"


def test_nothing_is_taken_from_a_query_that_is_behind() -> None:
    """kedacore/keda#5096: consumers stalled while they were scaled down."""
    behind = query(batches(6, 900, 8, behind=40_000, grows=-500), wanted=WHOLE_WINDOW, granted=8)
    assert wish(behind).slots == 8


def test_an_executor_counts_from_when_it_will_be_there_as_measured() -> None:
    """FLINK-34178, apache/flink-kubernetes-operator#759 and #711: the same for the time of a start."""
    growing = tuple(batches(12, 20_000 + 600 * n, 40)[n] for n in range(12))
    slow, fast = (wish(query(growing), startups_ms=(ms,)).unsmoothed for ms in (120_000, 1_000))
    assert slow is not None
    assert fast is not None
    assert slow > fast


def test_executors_that_no_query_needs_any_more_are_released() -> None:
    """opensearch-spark#302 and #324: micro-batches that always have tasks kept all executors permanently."""
    world = World(evolve(SETTINGS, scale_down_window_ms=60_000))
    world.start(2)
    world.query(lambda second: 6_000 if second < 300 else 100)
    world.run(300)
    assert world.executors >= 8
    world.run(900)
    assert world.executors == 1


def test_an_executor_is_not_given_back_before_it_was_of_use() -> None:
    """dask/dask-kubernetes#674: workers were removed before they had done anything, and requested again."""
    world = World(startup_ms=60_000)
    world.start(3)
    world.query(lambda second: 2_000 if second % 240 < 120 else 2_600)
    world.run(1_800)
    asked = [action.total for action in world.scene.actions if isinstance(action, RequestExecutors)]
    assert len(asked) <= 2


def test_a_policy_can_be_somebody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    """apache/spark#13863: users who wanted another rule than Spark's had to build another Spark."""
    seen = wants(monkeypatch, Wish(queries=keeps(q=3)))
    world = World()
    world.start(1)
    world.query(lambda _: 1_000)
    world.run(60)
    assert world.scene.query("q").granted_slots == 3
    assert world.executors == 3
    assert seen[-1].queries["q"].samples, "it sees what is measured"


def test_what_would_be_done_can_be_seen_before_it_is_done() -> None:
    """Druid's simulation endpoint, Flink's scaling report: the first run was the real one."""
    world = World(evolve(SETTINGS, advise_only=True))
    world.start(2)
    world.query(lambda _: 6_000)
    world.run(300)
    assert world.executors == 2
    plan = world.scene.query("q").plan
    assert plan is not None
    assert plan.granted.slots > 2
    assert plan.message.endswith("nothing is changed.")
    assert plan.outlook is not None
    assert plan.outlook.load > plan.outlook.target_load
