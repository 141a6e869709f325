"""Tests of the duration of a micro-batch: its fixed part, its waves, and at least its largest task."""

from __future__ import annotations

import pytest

from spark_elastic_lab.simulator.batches import BatchCost

TIME = BatchCost(fixed_ms=100, task_ms=10, read_us=0, work_us=1_000, jitter=0)


@pytest.mark.parametrize(
    ("partitions", "slots", "took"),
    [
        (4, 4, 100 + 10 + 10 + 1_000 / 4),
        (4, 2, 100 + 20 + 2 * (10 + 1_000 / 4)),
        (4, 3, 100 + 20 + 2 * (10 + 1_000 / 4)),  # the second wave has one task
        (1, 4, 100 + 10 + 10 + 1_000),
    ],
)
def test_waves_of_tasks(partitions: int, slots: float, took: float) -> None:
    assert TIME.batch_ms(1_000, 4, 0.25, partitions, slots) == pytest.approx(took)


def test_slots_that_are_shared_are_filled_by_others() -> None:
    assert TIME.work_ms(1_000, 4, 3, shared=True) == pytest.approx(4 / 3 * 260)
    assert TIME.work_ms(1_000, 4, 8, shared=True) == pytest.approx(260)
    assert TIME.work_ms(1_000, 4, 0.5, shared=True) == pytest.approx(8 * 260)


def test_a_hot_partition_or_key_takes_as_long_whatever_the_slots() -> None:
    hot = BatchCost(fixed_ms=0, task_ms=0, read_us=100, work_us=100, hot_key=0.5, jitter=0)
    assert hot.batch_ms(10_000, 10, 0.3, 100, 1_000) == pytest.approx(300 + 500)
    assert hot.batch_ms(10_000, 10, 0.1, 100, 1) == pytest.approx(2_000)


def test_a_query_without_a_shuffle_has_one_stage() -> None:
    time = BatchCost(fixed_ms=0, task_ms=0, read_us=100, work_us=0)
    assert not time.has_shuffle
    assert time.batch_ms(10_000, 10, 0.1, 200, 20) == pytest.approx(100)


@pytest.mark.parametrize("wrong", ["fixed_ms", "task_ms", "read_us", "work_us", "hot_key", "jitter"])
def test_nothing_takes_less_than_no_time(wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        BatchCost(**{wrong: -1})
