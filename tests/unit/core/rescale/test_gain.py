"""Tests of the gain model: its estimates before and after measurements, and the stability of its choices."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_elastic.core.events import StageCompleted
from spark_elastic.core.rescale.gain import BatchModel, Measurements, fit, waves
from spark_elastic.core.rescale.situation import TOLERANCE


def measured(*points: tuple[int, int, int]) -> Measurements:
    """Record micro-batches, each given as partitions, slots and duration."""
    result = Measurements()
    for batch, (partitions, slots, duration_ms) in enumerate(points):
        result.add(batch=batch, partitions=partitions, slots=slots, duration_ms=duration_ms, rows=1000)
    return result


@pytest.mark.parametrize(
    ("partitions", "slots", "expected"), [(1, 2, 1), (2, 2, 1), (3, 2, 2), (200, 2, 100), (0, 3, 0)]
)
def test_waves(partitions: int, slots: int, expected: int) -> None:
    assert waves(partitions, slots) == expected


@pytest.mark.parametrize(
    ("provider", "partitions", "measured_ms"),
    [
        ("rocksdb", 200, 7990),
        ("rocksdb", 8, 584),
        ("rocksdb", 2, 312),
        ("hdfs", 200, 5122),
        ("hdfs", 2, 209),
    ],
)
def test_the_defaults_are_near_what_was_measured_on_two_slots(
    provider: str, partitions: int, measured_ms: int
) -> None:
    model = fit(Measurements(), provider)  # type: ignore[arg-type]
    assert model.batch_ms(partitions, 2) == pytest.approx(measured_ms, rel=0.3)


def test_one_wave_is_explained_by_work() -> None:
    model = fit(measured((2, 2, 312)), "rocksdb")
    assert (model.base_ms, model.overhead_ms, model.work_ms) == (100, 80, 264)


def test_many_waves_are_explained_by_overhead() -> None:
    model = fit(measured((200, 2, 7990)), "rocksdb")
    assert model.overhead_ms == pytest.approx(77.65)
    assert model.work_ms == pytest.approx(250)
    assert model.best_partitions(2, 32768, TOLERANCE) == 2


def test_what_overhead_cannot_explain_is_work() -> None:
    model = fit(measured((3, 2, 10_000)), "rocksdb")
    assert model.overhead_ms == 160
    assert model.work_ms == pytest.approx(14_370)


def test_a_fast_batch_scales_the_fixed_costs_down() -> None:
    model = fit(measured((2, 2, 45)), "rocksdb")
    assert model.batch_ms(2, 2) == 45
    assert model.work_ms == 0


def test_two_points_tell_overhead_from_work() -> None:
    # The durations on a machine with 40 ms per partition and 600 ms of work.
    model = fit(measured((8, 2, 100 + 4 * 40 + 300), (2, 2, 100 + 40 + 300)), "rocksdb")
    assert model.overhead_ms == pytest.approx(40)
    assert model.work_ms == pytest.approx(600)


def test_the_other_way_round_the_work_is_known() -> None:
    model = fit(measured((2, 2, 480), (8, 2, 620)), "rocksdb")
    assert model.work_ms == pytest.approx(600)
    assert model.overhead_ms == pytest.approx(55)


def test_points_under_another_load_do_not_count() -> None:
    measurements = measured((8, 2, 5000))
    measurements.add(batch=9, partitions=2, slots=2, duration_ms=312, rows=10)
    assert fit(measurements, "rocksdb").overhead_ms == 80


def test_one_slow_batch_does_not_count() -> None:
    measurements = measured((2, 2, 312), (2, 2, 4000), (2, 2, 312))
    latest = measurements.latest
    assert latest is not None
    assert latest.batch_ms == 312


def test_only_the_last_batches_count_and_memory_is_bounded() -> None:
    measurements = measured(*[(2, 2, 9000)] * 20, *[(2, 2, 312)] * 3)
    assert len(measurements.points[0].durations_ms) == 5
    assert fit(measurements, "rocksdb").batch_ms(2, 2) == 312
    for slots in range(1, 50):
        measurements.add(batch=slots, partitions=2, slots=slots, duration_ms=300, rows=1)
    assert len(measurements.points) == 8


@pytest.mark.parametrize(
    ("slots", "upper", "expected"), [(1, 32768, 1), (2, 32768, 2), (8, 4, 4), (32, 32768, 19)]
)
def test_the_smallest_of_the_best_counts(slots: int, upper: int, expected: int) -> None:
    model = BatchModel(base_ms=100, overhead_ms=80, work_ms=264)
    assert model.best_partitions(slots, upper, TOLERANCE) == expected


def staged(batch_ms: int, *stages: tuple[int, int, int]) -> Measurements:
    """Record batch 7 on 2 slots and 2 partitions, with stages given as batch, tasks and duration."""
    result = Measurements()
    for batch, tasks, duration_ms in stages:
        result.add_stage(
            StageCompleted(id="s1", at=0, query="counts", batch=batch, tasks=tasks, duration_ms=duration_ms)
        )
    result.add(batch=7, partitions=2, slots=2, duration_ms=batch_ms, rows=1000)
    return result


def test_what_the_driver_does_in_a_batch_is_not_done_sooner_by_more_partitions() -> None:
    model = fit(staged(5_000, (7, 2, 300), (7, 2, 100)), "rocksdb")
    assert (model.base_ms, model.overhead_ms, model.work_ms) == (4_600, 80, 640)
    assert model.batch_ms(64, 64) > 4_600
    assert fit(staged(5_000), "rocksdb").batch_ms(64, 64) < 400


def test_stages_of_other_batches_and_with_other_tasks_do_not_count() -> None:
    assert staged(5_000, (6, 2, 300), (7, 9, 300), (8, 2, 300)).points == staged(5_000).points


def test_the_stages_of_batches_that_are_to_come_are_kept_and_bounded() -> None:
    measurements = staged(5_000, (6, 2, 1), (8, 2, 300), *[(9, 2, 1)] * 50)
    assert {stage.batch for stage in measurements.stages} == {9}
    assert len(measurements.stages) == 16


def test_stages_that_run_at_once_take_no_longer_than_their_batch() -> None:
    model = fit(staged(500, (7, 2, 400), (7, 2, 400)), "rocksdb")
    assert model.base_ms == 0
    assert model.batch_ms(2, 2) == 500


def test_a_base_that_was_measured_is_not_scaled_down() -> None:
    model = fit(staged(1_000, (7, 2, 40)), "rocksdb")
    assert (model.base_ms, model.overhead_ms, model.work_ms) == (960, 40, 0)


DURATIONS = st.integers(1, 100_000)
SIZES = st.integers(1, 300)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ((), 58),  # the smallest of the equally good counts
        ((60,), 58),
        ((20,), 60),  # a multiple of 20 slots; with 58, the third wave would leave two slots empty
        ((59,), 59),
        ((29,), 58),
        ((40,), 60),  # neither is a multiple; with the larger count, a wave has a smaller share of the work
    ],
)
def test_of_counts_that_are_as_good_the_one_that_suits_other_numbers_of_slots(
    seen: tuple[int, ...], expected: int
) -> None:
    model = BatchModel(base_ms=100.0, overhead_ms=20.0, work_ms=10_000.0)
    assert model.best_partitions(60, 32768, TOLERANCE, seen) == expected


@settings(max_examples=50)
@given(partitions=SIZES, slots=SIZES, duration_ms=DURATIONS, earlier=st.tuples(SIZES, SIZES, DURATIONS))
def test_the_last_measurement_is_always_met(
    partitions: int, slots: int, duration_ms: int, earlier: tuple[int, int, int]
) -> None:
    """Whatever explains it, the model reproduces the last measurement."""
    if earlier[:2] == (partitions, slots):
        earlier = (partitions + 1, slots, duration_ms)
    model = fit(measured(earlier, (partitions, slots, duration_ms)), "rocksdb")
    assert model.batch_ms(partitions, slots) == pytest.approx(duration_ms, rel=1e-6)
    assert min(model.base_ms, model.overhead_ms, model.work_ms) >= 0


@settings(max_examples=50)
@given(
    base=st.floats(0, 1e4),
    overhead=st.floats(0, 1e4),
    work=st.floats(0, 1e7),
    slots=SIZES,
    upper=SIZES,
)
def test_the_best_count_is_near_the_fastest_and_no_smaller_one_is(
    base: float, overhead: float, work: float, slots: int, upper: int
) -> None:
    model = BatchModel(base_ms=base, overhead_ms=overhead, work_ms=work)
    best = model.best_partitions(slots, upper, TOLERANCE)
    times = [model.batch_ms(count, slots) for count in range(1, upper + 1)]
    near = min(times) * (1 + TOLERANCE) * (1 + 1e-9)
    assert 1 <= best <= min(slots, upper)
    assert times[best - 1] <= near
    assert all(time >= near * (1 - 1e-6) for time in times[: best - 1])
