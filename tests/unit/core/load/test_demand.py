"""Tests of the load of a query and of the slots it would need."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from spark_elastic.core.events import SourceFacts, Trigger
from spark_elastic.core.load.pace import Batch, Pace
from spark_elastic.core.load.reading import Reading
from spark_elastic.core.query.demand import (
    Workload,
    busy,
    desired_slots,
    executors_for,
    load,
    together,
)
from spark_elastic.core.rescale.gain import BatchModel
from tests.unit.core.builder import STATEFUL

FREE = BatchModel(base_ms=0, overhead_ms=0, work_ms=0)
"""A model in which micro-batches consist of work alone."""


def batch(duration_ms: int, gap_ms: int | None, **change: Any) -> Batch:
    plain = Batch(duration_ms=duration_ms, gap_ms=gap_ms, input_rows=100, partitions=4, slots=4)
    return evolve(plain, **change)


def query(
    *batches: Batch,
    interval: int = 1_000,
    model: BatchModel = FREE,
    trigger: Trigger = "processing_time",
    idle: bool = False,
    held: bool = False,
    needed: int = 1,
    most: int = 100,
    reading: Reading | None = None,
) -> Workload:
    facts = evolve(STATEFUL, trigger=trigger, trigger_ms=interval)
    pace = Pace(run="r1", started=1, batches=batches, idle=idle)
    return Workload(facts=facts, pace=pace, model=model, needed=needed, most=most, held=held, reading=reading)


def test_load_is_batch_time_by_trigger_interval() -> None:
    assert load(query(batch(600, 1_000))) == 0.6
    assert load(query(batch(1_000, 1_000))) == 1.0


def test_the_first_batch_within_its_interval_is_known() -> None:
    assert load(query(batch(600, None))) == 0.6


def test_of_a_first_batch_that_overruns_its_interval_nobody_knows_the_load() -> None:
    # It may have read the input of several days.
    assert load(query(batch(60_000, None))) is None
    assert desired_slots(query(batch(60_000, None)), 0.75) is None


def test_above_one_the_ratio_of_the_rates_counts() -> None:
    assert load(query(batch(3_000, 2_000))) == 1.5
    # Long micro-batches that barely keep up, or that catch up after a pause.
    assert load(query(batch(3_000, 3_000))) == 1.0
    assert load(query(batch(3_000, 6_000))) == 1.0


def test_without_an_interval_the_fixed_part_of_a_batch_is_no_load() -> None:
    model = BatchModel(base_ms=100, overhead_ms=100, work_ms=0)
    steady = query(batch(1_000, 1_000), interval=0, model=model)
    assert load(steady) == pytest.approx(0.8)
    assert load(query(batch(400, 400), interval=0, model=model)) == pytest.approx(0.5)
    assert load(query(batch(2_000, 1_000), interval=0, model=model)) == pytest.approx(1.8)


def test_without_an_interval_a_query_that_waits_for_rows_is_loaded_less() -> None:
    model = BatchModel(base_ms=100, overhead_ms=100, work_ms=0)
    assert load(query(batch(1_000, 10_000), interval=0, model=model)) == pytest.approx(0.08)


def test_without_an_interval_the_first_batch_tells_no_load() -> None:
    assert load(query(batch(300, None), interval=0)) is None
    assert desired_slots(query(batch(300, None), interval=0), 0.75) is None


@pytest.mark.parametrize("trigger", ["once", "available_now", "continuous", "real_time"])
def test_triggers_without_repeated_batches_have_no_load(trigger: Trigger) -> None:
    other = query(batch(600, 1_000), trigger=trigger)
    assert load(other) is None
    assert desired_slots(other, 0.75) is None


def test_an_idle_query_has_no_load_and_needs_its_lower_bound() -> None:
    resting = query(idle=True, needed=2)
    assert (load(resting), busy(resting), desired_slots(resting, 0.75)) == (0.0, 0.0, 2)


def test_a_query_that_waits_for_slots_needs_its_lower_bound() -> None:
    waiting = query(held=True, needed=3)
    assert (load(waiting), busy(waiting), desired_slots(waiting, 0.75)) == (None, 0.0, 3)


def test_of_a_query_before_its_first_batch_nothing_is_known() -> None:
    fresh = query()
    assert (load(fresh), busy(fresh), desired_slots(fresh, 0.75)) == (None, None, None)


@pytest.mark.parametrize(
    ("duration_ms", "target", "slots"),
    [(750, 0.75, 4), (900, 0.75, 5), (300, 0.75, 2), (600, 0.5, 5), (75, 0.75, 1)],
)
def test_work_is_shared_out_over_as_many_slots_as_the_target_takes(
    duration_ms: int, target: float, slots: int
) -> None:
    assert desired_slots(query(batch(duration_ms, 1_000)), target) == slots


def test_what_more_slots_do_not_shorten_asks_for_none() -> None:
    model = BatchModel(base_ms=100, overhead_ms=100, work_ms=0)
    # 700 ms of work on 4 slots; 550 ms of the interval are left for it.
    assert desired_slots(query(batch(900, 1_000), model=model), 0.75) == 6
    # Opening the state of 4 partitions one after the other occupies one slot, not 4.
    waves = batch(900, 1_000, partitions=4, slots=1)
    assert desired_slots(query(waves, model=model), 0.75) == 1


def test_what_a_driver_does_counts_as_work_since_reading_the_sources_looks_the_same() -> None:
    model = BatchModel(base_ms=800, overhead_ms=0, work_ms=0)
    assert desired_slots(query(batch(900, 1_000), model=model), 0.75) == 5


def test_a_target_that_no_number_of_slots_reaches_does_not_ask_for_all() -> None:
    model = BatchModel(base_ms=100, overhead_ms=100, work_ms=0)
    assert desired_slots(query(batch(380, 380), interval=200, model=model), 0.75) == 9


def test_a_batch_with_the_rows_of_several_intervals_counts_as_one_interval() -> None:
    assert desired_slots(query(batch(2_000, 2_000)), 0.8) == 5
    assert desired_slots(query(batch(2_000, 1_000)), 0.8) == 10


def test_without_an_interval_the_rate_of_work_counts() -> None:
    assert desired_slots(query(batch(900, 1_000), interval=0), 0.75) == 5
    assert desired_slots(query(batch(900, 9_000), interval=0), 0.75) == 1


def test_slots_that_the_last_wave_leaves_empty_are_no_work() -> None:
    uneven = batch(600, 1_000, partitions=6, slots=4)
    assert desired_slots(query(uneven), 0.75) == 3


def test_at_most_half_of_a_batch_is_taken_for_fixed() -> None:
    model = BatchModel(base_ms=100, overhead_ms=100, work_ms=0)
    assert desired_slots(query(batch(80, 100), interval=100, model=model), 0.75) == 5


def test_a_query_above_the_target_is_never_asked_to_shrink() -> None:
    model = BatchModel(base_ms=1_000, overhead_ms=1_000, work_ms=0)
    for duration in (760, 800, 1_000, 3_000):
        wanted = desired_slots(query(batch(duration, 1_000), model=model), 0.75)
        assert wanted is not None
        assert wanted > 4


def test_one_slow_batch_asks_for_nothing() -> None:
    usual = [batch(300, 1_000)] * 4
    assert desired_slots(query(*usual, batch(5_000, 1_000)), 0.75) == 2


def test_bounds_hold() -> None:
    assert desired_slots(query(batch(900, 1_000), most=4), 0.75) == 4
    assert desired_slots(query(batch(100, 1_000), needed=3), 0.75) == 3


def read(*, divisible: bool) -> Reading:
    return Reading((SourceFacts(name="source", divisible=divisible),), divide_ordered=False, tasks=None)


def test_without_a_shuffle_the_tasks_are_those_of_the_sources() -> None:
    # The session's own number of partitions, 4, does not matter.
    few = query(batch(900, 1_000, source_tasks=2), reading=read(divisible=True))
    assert busy(few) == 0.9 * 2 / 4
    # So two slots have done all the work.
    assert desired_slots(few, 0.75) == 3
    assert desired_slots(query(batch(900, 1_000)), 0.75) == 5
    # Where the number of source tasks is unknown, the slots count instead.
    assert desired_slots(query(batch(900, 1_000), reading=read(divisible=True)), 0.75) == 5


def test_no_more_slots_are_desired_than_sources_that_cannot_be_divided_have_tasks() -> None:
    batches = (batch(900, 1_000, source_tasks=2), batch(900, 1_000, source_tasks=1))
    assert desired_slots(query(*batches, reading=read(divisible=False)), 0.75) == 2
    assert desired_slots(query(*batches, reading=read(divisible=False), needed=3), 0.75) == 3
    assert desired_slots(query(*batches, reading=read(divisible=True)), 0.75) == 3
    # Files that cannot be split allow no more tasks, even if their source can be divided.
    packed = (*batches, batch(900, 1_000, source_tasks=1, whole=True))
    assert desired_slots(query(*packed, reading=read(divisible=True)), 0.2) == 2


def test_no_slots_tell_nothing() -> None:
    lost = query(batch(900, 1_000, slots=0))
    assert (busy(lost), desired_slots(lost, 0.75)) == (None, None)


def test_busy_is_the_share_of_the_time_by_the_share_of_the_slots() -> None:
    assert busy(query(batch(500, 1_000))) == 0.5
    assert busy(query(batch(500, 1_000, partitions=1))) == 0.125
    assert busy(query(batch(500, None))) == 0.5
    assert busy(query(batch(3_000, 2_000))) == 1.0
    assert busy(query(batch(500, None), interval=0)) is None


def test_what_is_not_known_of_one_is_not_known_of_all() -> None:
    assert together([0.5, 0.25]) == 0.75
    assert together([0.5, None]) is None
    assert together([]) is None


def test_executors_are_those_that_have_the_slots() -> None:
    assert executors_for(5, [2, 2], 1) == 3
    assert executors_for(5, [], 4) == 2
    assert executors_for(0, [2], 1) == 0


@given(
    duration=st.integers(1, 100_000),
    gap=st.none() | st.integers(1, 100_000),
    interval=st.integers(0, 60_000),
    partitions=st.integers(1, 64),
    slots=st.integers(0, 64),
    base=st.floats(0, 5_000),
    overhead=st.floats(0, 500),
    target=st.floats(0.05, 1.0),
)
def test_whatever_is_measured_the_answer_is_within_bounds(
    duration: int,
    gap: int | None,
    interval: int,
    partitions: int,
    slots: int,
    base: float,
    overhead: float,
    target: float,
) -> None:
    measured = batch(duration, gap, partitions=partitions, slots=slots)
    for model in (FREE, BatchModel(base_ms=base, overhead_ms=overhead, work_ms=1.0)):
        one = query(measured, interval=interval, model=model, needed=2, most=40)
        wanted = desired_slots(one, target)
        assert wanted is None or 2 <= wanted <= 40
        more = desired_slots(one, target / 2)
        assert more is None or wanted is None or more >= wanted
        share, used = load(one), busy(one)
        assert share is None or share >= 0
        assert used is None or 0 <= used <= 1
