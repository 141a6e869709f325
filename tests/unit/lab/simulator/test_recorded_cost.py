"""Tests that the cost of micro-batches is fitted to all of them, in the simulator's own terms."""

from __future__ import annotations

from random import Random

import pytest

from spark_elastic.core.policies.view import Sample
from spark_elastic_lab.simulator.batches import BatchCost
from spark_elastic_lab.simulator.recorded import measured_cost
from tests.unit.lab.simulator.rivals_views import sample

COST = BatchCost(fixed_ms=800, task_ms=0, read_us=0, work_us=6_000)


def batch(number: int, rows: int, slots: int, partitions: int, factor: float = 1.0) -> Sample:
    took = round(factor * COST.work_ms(rows, partitions, slots) + factor * COST.fixed_ms)
    return sample(10_000 * number, rows, took, slots=slots, partitions=partitions)


def test_slots_that_a_last_wave_leaves_empty_are_counted() -> None:
    known = [batch(number, 500 + 50 * number, 2 + number % 4, 8) for number in range(30)]
    found = measured_cost(known)
    assert found is not None
    assert found.fixed_ms == pytest.approx(800, rel=0.01)
    assert found.row_ms == pytest.approx(6, rel=0.01)
    assert found.jitter < 0.01


def test_loads_that_are_nearly_alike_tell_it_and_a_cold_begin_does_not_matter() -> None:
    chance = Random(3)
    warm = [batch(number, 800, 3, 3, chance.lognormvariate(0, 0.05)) for number in range(5, 40)]
    warm += [batch(number, 1_800, 5, 5, chance.lognormvariate(0, 0.05)) for number in range(40, 80)]
    cold = [batch(number, 900, 6, 6, 8.0 - number) for number in range(5)]
    without, found = measured_cost(warm), measured_cost([*cold, *warm])
    assert without is not None
    assert found is not None
    assert found.fixed_ms == pytest.approx(800, rel=0.15)
    assert found.row_ms == pytest.approx(6, rel=0.05)
    assert found.jitter == pytest.approx(0.05, rel=0.4)
    assert found.fixed_ms == pytest.approx(without.fixed_ms, rel=0.05)


def test_those_during_which_slots_changed_are_left_out_unless_there_are_no_others() -> None:
    steady = [batch(number, 500 * number, 2, 2) for number in range(1, 10)]
    torn = [sample(10_000 * number, 1_000, 60_000, steady=False) for number in range(10, 40)]
    assert measured_cost(steady) == measured_cost([*steady, *torn])
    only = measured_cost(torn)
    assert only is not None
    assert only.fixed_ms + only.row_ms * 250 == pytest.approx(60_000)


def test_of_a_long_run_a_part_tells_enough() -> None:
    found = measured_cost([batch(number, 500 + number % 997, 4, 4) for number in range(9_000)])
    assert found is not None
    assert found.row_ms == pytest.approx(6, rel=0.01)


def test_batches_that_are_all_alike_have_a_usual_fixed_part() -> None:
    found = measured_cost([batch(number, 1_000, 4, 4) for number in range(9)])
    assert found is not None
    assert 0 < found.fixed_ms < 2_300
    assert found.fixed_ms + found.row_ms * 250 == pytest.approx(2_300, rel=0.01)
    assert measured_cost([]) is None
