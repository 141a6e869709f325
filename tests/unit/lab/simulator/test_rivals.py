"""Tests of the rivals' rules, each by its documentation or source."""

from __future__ import annotations

import pytest

from spark_elastic.core.policies.policy import Wish
from spark_elastic_lab.simulator.demand import Demand
from spark_elastic_lab.simulator.rivals.ds2 import Ds2, instances
from spark_elastic_lab.simulator.rivals.fixed import Fixed, Oracle
from spark_elastic_lab.simulator.rivals.kubernetes import Keda, LoadHpa
from spark_elastic_lab.simulator.rivals.rival import RunningBatch, window
from spark_elastic_lab.simulator.rivals.spark import (
    DynamicAllocation,
    Ramp,
    StreamingAllocation,
    needed_executors,
)
from tests.unit.lab.simulator.rivals_views import sample, seen, view


@pytest.mark.parametrize(
    ("start", "least", "most", "ratio", "sustained", "expected"),
    [
        (0, 0, 1_000, 1.0, 1, [(1, 1), (2, 3), (3, 7), (4, 15), (5, 31), (6, 50)]),
        (2, 2, 20, 1.0, 5, [(1, 3), (6, 5), (11, 9), (16, 17), (21, 20)]),
        (0, 0, 1_000, 0.5, 1, [(1, 1), (2, 3), (3, 7), (4, 15), (5, 25)]),
    ],
)
def test_dynamic_allocation_ramps_up(
    start: int, least: int, most: int, ratio: float, sustained: float, expected: list[tuple[int, int]]
) -> None:
    """200 waiting tasks, with 4 slots per executor; executors start at once."""
    ramp = Ramp(start, sustained_s=sustained)
    needed = needed_executors(200, ratio, 4)
    steps, before = [], start
    for tenth in range(250):
        target = ramp.step(tenth / 10, needed, before, least, most, waits=True)
        if target != before:
            steps.append((tenth / 10, target))
        before = target
    assert steps == expected


def test_a_queue_that_drains_sets_the_ramp_back() -> None:
    ramp = Ramp(2)
    for now, waits in ((0, True), (0.9, True), (1.0, False), (1.9, True), (2.8, True)):
        assert ramp.step(now, 9, 2, 1, 9, waits=waits) == 2
    assert ramp.step(2.9, 9, 2, 1, 9, waits=True) == 3
    assert ramp.step(3.0, 1, 3, 2, 9, waits=False) == 2


def running(begun: int, left: int, slots: float = 4) -> RunningBatch:
    return RunningBatch(query="q", begun=begun, tasks=40, left=left, slots=slots)


def test_dynamic_allocation_asks_for_the_tasks_that_wait() -> None:
    rival = DynamicAllocation(most=8)
    wishes = [
        rival.decide(view(now, seen(), executors=1, running=(running(0, 40),))).executors
        for now in (0, 1_000, 2_000, 3_000, 4_000)
    ]
    assert wishes == [1, 2, 4, 8, 8]


def test_dynamic_allocation_gives_back_what_is_idle_for_a_minute_and_nothing_in_use() -> None:
    rival = DynamicAllocation(most=8)
    ended = seen(sample(10_000, 9, 1_000, partitions=2))
    # two of them ran a task within the last minute
    assert rival.decide(view(60_000, ended, executors=4)).executors == 2
    assert rival.decide(view(70_000, ended, executors=4)).executors == 1
    busy = DynamicAllocation(most=8)
    assert busy.decide(view(70_000, ended, executors=4, running=(running(60_000, 3, 16),))).executors == 3


def test_the_streaming_variant_grows_where_a_batch_uses_up_its_interval() -> None:
    rival = StreamingAllocation(most=8)

    def wish(now: int, begun: int, executors: int) -> int | None:
        shown = view(now, seen(sample(begun, 9, 8_000)), executors=executors, running=(running(begun, 40),))
        return rival.decide(shown).executors

    assert wish(8_000, 0, 2) == 2
    assert wish(9_000, 0, 2) == 3
    assert wish(10_000, 0, 3) == 3
    assert wish(19_000, 0, 3) == 5
    assert wish(29_000, 0, 5) == 8


def test_the_streaming_variant_gives_back_a_share_in_each_round() -> None:
    rival = StreamingAllocation(most=20, least=7)
    quick = seen(sample(0, 9, 4_000))
    wishes = [
        rival.decide(view(now, quick, executors=10)).executors for now in (10_000, 11_000, 20_000, 30_000)
    ]
    assert wishes == [8, 8, 7, 7]
    slow = StreamingAllocation(most=20)
    assert slow.decide(view(10_000, seen(sample(0, 9, 6_000)), executors=10)).executors == 10


def test_keda_divides_the_lag() -> None:
    rival = Keda(threshold=1_000, most=6)
    lags = [(0, 1), (2_500, 3), (2_500, 3), (90_000, 6)]
    for place, (lag, wanted) in enumerate(lags):
        shown = view(place * 30_000, seen(), requested=1, uncommitted={"q": lag})
        assert rival.decide(shown).executors == wanted
    # A step down uses the maximum of the last five minutes.
    assert rival.decide(view(380_000, seen(), requested=6, uncommitted={"q": 0})).executors == 6
    assert rival.decide(view(391_000, seen(), requested=6, uncommitted={"q": 0})).executors == 1


@pytest.mark.parametrize(
    ("duration_ms", "wanted"), [(7_500, 4), (8_100, 4), (9_000, 5), (15_000, 8), (100, 1)]
)
def test_an_autoscaler_on_the_load_keeps_its_target(duration_ms: int, wanted: int) -> None:
    rival = LoadHpa(most=9, stabilization_s=0)
    assert rival.decide(view(0, seen(sample(0, 9, duration_ms)), executors=4)).executors == wanted


def test_an_autoscaler_on_the_load_stays_without_one() -> None:
    rival = LoadHpa(most=9, stabilization_s=0)
    assert rival.decide(view(0, executors=3)).executors == 3
    assert rival.decide(view(0, seen(), executors=3)).executors == 3
    assert rival.decide(view(0, seen(sample(0, 9, 9), idle=True), executors=3)).executors == 1


@pytest.mark.parametrize(
    ("rate", "true", "current", "factor", "wanted"),
    [
        (500, 1_000, 4, 0, 2),
        (501, 1_000, 4, 0, 3),
        (500, 1_000, 4, 0.2, 3),
        (4_000, 1_000, 4, 0, 16),
        (0, 9, 4, 0, 1),
    ],
)
def test_ds2_goes_by_the_rate_of_one_instance(
    rate: float, true: float, current: int, factor: float, wanted: int
) -> None:
    assert instances(rate, true, current, factor) == wanted


def test_ds2_needs_one_look_after_a_change() -> None:
    rival = Ds2()
    # 4 slots process 10,000 rows in 2 s; 1,000 rows/s arrive.
    shown = seen(*(sample(at, 10_000, 2_000) for at in range(10_000, 70_000, 10_000)))
    assert rival.decide(view(60_000, shown)) == Wish()
    assert rival.decide(view(70_000, shown)).queries["q"].slots == 1
    assert rival.decide(view(80_000, shown)) == Wish()


def test_ds2_corrects_where_a_source_has_more_than_is_read() -> None:
    rival = Ds2(warm_up=0, ratio=1.5)
    shown = seen(*(sample(at, 10_000, 1_000, behind=2 * at) for at in range(10_000, 70_000, 10_000)))
    # The backlog grows by 100,000 rows in a minute in which 60,000 are read.
    assert rival.decide(view(60_000, shown)).queries["q"].slots == 11


def test_fixed_and_oracle() -> None:
    assert Fixed(executors=7).decide(view(0)).executors == 7
    demand = Demand(executors=(1, 5, 2, 3), slots=(1, 5, 2, 3), step_s=10)
    oracle = Oracle(demand=demand, ahead_s=10, keep_s=0, begun=1_000)
    assert [oracle.decide(view(1_000 + at)).executors for at in (0, 10_000, 20_000, 30_000)] == [5, 5, 3, 3]
    keeps = Oracle(demand=demand, ahead_s=0, keep_s=20, begun=0)
    assert keeps.decide(view(30_000)).executors == 5


def test_a_window_that_is_shorter_than_a_batch_still_shows_two() -> None:
    samples = [sample(at, 10_000, 2_000) for at in (10_000, 20_000, 30_000)]
    assert window(seen(*samples), 15_000) == tuple(samples[1:])
    assert window(seen(*samples), 99_000) == tuple(samples[1:])
    assert window(seen(*samples), 0) == tuple(samples)
    assert window(seen(), 0) == ()
