"""Tests of the slots for an objective: the duration of a micro-batch, and the limit of its fixed part."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_elastic.core.policies.autoscale.model import BatchTime, Objective, load_with, needed

LINE = BatchTime(fixed_ms=100, row_ms=1, samples=10, error=0, separates=True)
EACH_SECOND = Objective(interval_ms=1_000, load=0.75)
AT_ONCE = Objective(interval_ms=0, load=0.75)


def test_a_batch_has_to_be_through_in_a_part_of_the_interval() -> None:
    # 4 rows per ms are 4000 in a micro-batch; 650 ms are left for them.
    found = needed(LINE, EACH_SECOND, 4, load=0.75)
    assert found.slots == pytest.approx(4_000 / 650)
    assert found.whole == 7
    assert load_with(LINE, EACH_SECOND, 4, found.slots) == pytest.approx(0.75)


def test_a_query_without_an_interval_has_to_keep_up() -> None:
    assert needed(LINE, AT_ONCE, 3, load=0.75).slots == pytest.approx(4)
    assert load_with(LINE, AT_ONCE, 3, 4) == pytest.approx(0.75)


def test_a_lag_below_what_the_load_allows_takes_more_slots() -> None:
    tight = Objective(interval_ms=1_000, load=0.75, max_lag_ms=1_500)
    assert needed(LINE, tight, 4, load=0.75).slots == pytest.approx(10)
    wide = Objective(interval_ms=1_000, load=0.75, max_lag_ms=60_000)
    assert needed(LINE, wide, 4, load=0.75) == needed(LINE, EACH_SECOND, 4, load=0.75)


def test_a_lag_that_no_slots_can_keep_leaves_the_load_to_decide() -> None:
    never = Objective(interval_ms=10_000, load=0.75, max_lag_ms=5_000)
    assert never.room_ms(0.75) == 7_500


def test_with_a_fixed_part_that_leaves_no_room_more_slots_are_not_asked_for_without_end() -> None:
    slow = BatchTime(fixed_ms=900, row_ms=1, samples=10, error=0, separates=True)
    found = needed(slow, EACH_SECOND, 4, load=0.75)
    assert found.fixed
    assert found.slots == pytest.approx(4_000 / 225)


def test_a_limit_of_the_source_lets_in_less_than_comes() -> None:
    found = needed(LINE, EACH_SECOND, 4, load=0.75, batch_rows=1_000)
    assert not found.admits
    assert found.slots == pytest.approx(1_000 / 650)


def test_without_an_interval_a_limited_batch_has_the_time_that_its_rows_take_to_come() -> None:
    found = needed(LINE, AT_ONCE, 1, load=0.5, batch_rows=1_000)
    assert found.slots == pytest.approx(1_000 / 400)


def test_a_full_load_beside_a_lag_that_the_fixed_part_takes_up_has_an_answer() -> None:
    line = BatchTime(fixed_ms=500, row_ms=1, samples=1, error=0, separates=True)
    assert needed(line, Objective(interval_ms=0, load=1.0, max_lag_ms=1_000), 1, load=1.0).whole == 100


def test_no_rows_need_one_slot() -> None:
    assert needed(LINE, EACH_SECOND, 0, load=0.75).whole == 1


@given(
    fixed=st.floats(0, 5_000), row=st.floats(0, 50), rate=st.floats(0, 1_000),
    interval=st.integers(0, 60_000), lag=st.none() | st.integers(1_000, 600_000), load=st.floats(0.01, 1),
    limit=st.none() | st.floats(1, 1e6),
)  # fmt: skip
def test_it_is_never_less_than_one_slot_and_more_rows_never_take_fewer(
    fixed: float, row: float, rate: float, interval: int, lag: int | None, load: float, limit: float | None
) -> None:
    line = BatchTime(fixed_ms=fixed, row_ms=row, samples=1, error=0, separates=True)
    objective = Objective(interval_ms=interval, load=load, max_lag_ms=lag)
    less = needed(line, objective, rate, load=load)
    more = needed(line, objective, 2 * rate, load=load)
    assert 1 <= less.whole <= more.whole
    assert needed(line, objective, rate, load=load, batch_rows=limit).whole >= 1
