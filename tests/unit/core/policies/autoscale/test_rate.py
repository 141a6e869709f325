"""Tests of the arrival rate, which counts what the source offers, not what was read."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from attrs import evolve

from spark_elastic.core.policies.autoscale import model
from spark_elastic.core.policies.autoscale.model import Inflow
from spark_elastic.core.policies.view import Sample
from tests.unit.core.policies.seen import batches, sample


def inflow(samples: Sequence[Sample], interval_ms: int = 1_000) -> Inflow | None:
    return model.inflow(samples, interval_ms)


def test_nothing_is_known_before_two_batches_are_a_time_apart() -> None:
    assert inflow(()) is None
    assert inflow([sample(gap_ms=None)]) is None
    known = inflow([sample(0, gap_ms=None), sample(1)])
    assert known is not None
    assert known.rows_per_ms == 1


def test_rows_that_pile_up_came_in_too() -> None:
    # The lag grows from 950 to 1000 while 100 rows are read in 1 s, so 150 rows arrived.
    found = inflow([sample(0, behind=950, gap_ms=None), sample(1, behind=1_000, input_rows=100)])
    assert found is not None
    assert found.rows_per_ms * 1_000 == pytest.approx(150)
    assert found.behind == 1_000


def test_rows_that_are_caught_up_came_in_before() -> None:
    found = inflow([sample(0, behind=900, gap_ms=None), sample(1, behind=0, input_rows=1_000)])
    assert found is not None
    assert found.rows_per_ms * 1_000 == pytest.approx(100)


def test_a_source_that_says_nothing_leaves_what_is_behind_unknown() -> None:
    found = inflow(batches(5, 1_000, 4))
    assert found is not None
    assert (found.behind, found.limited, found.grows) == (None, False, False)


def test_a_query_that_reads_nothing_has_a_rate_of_zero_and_divides_by_nothing() -> None:
    found = inflow([sample(number, input_rows=0, behind=0) for number in range(4)])
    assert found is not None
    assert (found.rows_per_ms, found.behind) == (0, 0)


def test_a_batch_as_large_as_its_limit_lets_it_be() -> None:
    found = inflow(batches(4, 500, 4, behind=1_000, grows=200))
    assert found is not None
    assert (found.limited, found.grows, found.batch_rows) == (True, True, 500)
    assert inflow(batches(4, 500, 4, behind=0)) != found


def test_only_the_last_half_minute_counts() -> None:
    then, now = batches(60, 100, 4), batches(30, 1_000, 4)
    found = inflow((*then[:-30], *now))
    assert found is not None
    assert found.rows_per_ms == pytest.approx(1)


def test_what_comes_all_at_once_is_no_rate() -> None:
    usual = batches(6, 1_000, 4, behind=0)
    burst = evolve(usual[-1], behind=500_000)
    found = inflow((*usual[:-1], burst))
    assert found is not None
    assert found.rows_per_ms <= 2
    read_at_once = inflow((*usual[:-1], evolve(usual[-1], input_rows=500_000)))
    assert read_at_once is not None
    assert read_at_once.rows_per_ms <= 2


def test_rows_that_come_with_each_third_batch_only_are_a_rate() -> None:
    found = inflow([sample(number, input_rows=3_000 * (number % 3 == 0)) for number in range(31)])
    assert found is not None
    assert found.rows_per_ms == pytest.approx(1, rel=0.1)


def test_what_floods_a_batch_comes_on() -> None:
    usual = batches(6, 1_000, 4, behind=0)
    flooded = inflow((*usual, sample(7, input_rows=8_000, duration_ms=9_000, behind=0)))
    assert flooded is not None
    assert flooded.rows_per_ms == pytest.approx(8)


def test_a_rate_that_rises_is_seen_at_once_and_one_that_falls_after_a_while() -> None:
    up = inflow([sample(number, input_rows=1_000 if number < 10 else 2_000) for number in range(12)])
    down = inflow([sample(number, input_rows=2_000 if number < 10 else 1_000) for number in range(12)])
    assert up is not None
    assert down is not None
    assert up.rows_per_ms == 2
    assert down.rows_per_ms == pytest.approx(2, rel=0.15)
