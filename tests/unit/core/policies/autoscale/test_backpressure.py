"""Tests of the limit on the rows of one micro-batch."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from spark_elastic.core.policies.autoscale.model import BatchTime, Inflow
from spark_elastic.core.policies.autoscale.query_metrics import most_rows

LINE = BatchTime(fixed_ms=100, row_ms=1, samples=20, error=0, separates=True)
EACH_10_S = 10_000
FEW = Inflow(rows_per_ms=1)


def test_as_many_as_are_processed_in_the_interval() -> None:
    assert most_rows(LINE, FEW, EACH_10_S, busy=4) == 4 * 9_900
    assert most_rows(LINE, FEW, EACH_10_S, busy=8) == 8 * 9_900


def test_a_large_fixed_part_has_longer_batches() -> None:
    slow = evolve(LINE, fixed_ms=3_000)
    assert most_rows(slow, FEW, EACH_10_S, busy=4) == 4 * (12_000 - 3_000)


def test_where_it_would_fall_behind_for_good_batches_get_longer() -> None:
    much, line = Inflow(rows_per_ms=3.8, grows=True), evolve(LINE, fixed_ms=1_000)
    found = most_rows(line, much, EACH_10_S, busy=4)  # 4 slots process at most 4 rows per ms
    assert found is not None
    assert found == pytest.approx(4 * (22_000 - 1_000))
    assert found / line.batch_ms(found, 4) > 3.8, "and what has piled up becomes less"
    once = evolve(much, grows=False)
    assert most_rows(line, once, EACH_10_S, busy=4) == 4 * 9_000, "a burst is no rate"


def test_where_only_more_slots_would_keep_up_batches_stay_short() -> None:
    for rate in (3.999, 4, 9):
        much = Inflow(rows_per_ms=rate, grows=True)
        assert most_rows(LINE, much, EACH_10_S, busy=4) == 4 * 9_900
        assert most_rows(evolve(LINE, fixed_ms=0), much, EACH_10_S, busy=4) == 4 * 10_000


def test_nothing_is_limited_by_what_is_not_known() -> None:
    assert most_rows(LINE, FEW, 0, busy=4) is None
    assert most_rows(evolve(LINE, samples=2), FEW, EACH_10_S, busy=4) is None
    assert most_rows(evolve(LINE, error=2.0), FEW, EACH_10_S, busy=4) is None
    assert most_rows(evolve(LINE, row_ms=0), FEW, EACH_10_S, busy=4) is None


@given(
    fixed=st.floats(0, 60_000),
    row=st.floats(1e-4, 100),
    rate=st.floats(0, 1e4),
    busy=st.floats(1, 1_000),
    grows=st.booleans(),
)
def test_it_costs_a_fourth_of_the_throughput_at_most(
    fixed: float, row: float, rate: float, busy: float, grows: bool
) -> None:
    line = evolve(LINE, fixed_ms=fixed, row_ms=row)
    found = most_rows(line, Inflow(rows_per_ms=rate, grows=grows), EACH_10_S, busy)
    assert found is not None
    assert found >= 1
    if found > 100:  # below that, rounding to whole rows dominates
        assert found / line.batch_ms(found, busy) >= 0.74 * busy / row
