"""Tests of skew: one task that takes far longer than the others."""

from __future__ import annotations

from attrs import evolve

from spark_elastic.core.policies.autoscale.measured import skewed
from tests.unit.core.policies.seen import batches, sample, work

LONG = work(run_ms=1_200, longest_ms=800, median_ms=60)


def test_a_task_that_takes_most_of_the_batch_and_far_longer_than_half_of_them_is_skew() -> None:
    found = skewed(batches(3, 3_600, 4, work=LONG))
    assert found is not None
    assert (found.longest_ms, found.median_ms) == (800, 60)
    # While the longest task runs, all others need only half a slot.
    assert found.useful == 2


def test_tasks_of_about_the_same_size_are_none() -> None:
    assert skewed(batches(3, 3_600, 4, work=work(run_ms=3_000, longest_ms=800, median_ms=700))) is None


def test_a_long_task_that_is_a_small_part_of_its_batch_is_none() -> None:
    assert skewed(batches(3, 3_600, 4, fixed=2_000, work=LONG)) is None


def test_one_slow_task_is_an_accident() -> None:
    even = work(run_ms=1_200, longest_ms=300, median_ms=280)
    assert skewed([sample(number, work=one) for number, one in enumerate((even, even, LONG))]) is None
    assert skewed(batches(1, 3_600, 4, work=LONG)) is None


def test_what_is_not_told_is_not_known() -> None:
    told = batches(3, 3_600, 4, work=LONG)
    assert skewed(()) is None
    assert skewed((*told[:2], evolve(told[2], work=None))) is None
    assert skewed(batches(3, 3_600, 4, work=work(run_ms=0, longest_ms=0, median_ms=0))) is None
