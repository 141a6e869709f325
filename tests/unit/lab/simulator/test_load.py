"""Tests of the load, which gives the rows that have arrived by a moment."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_elastic_lab.simulator.load import Load

RATES = st.lists(st.sampled_from([0.0, 0.5, 1.0, 7.0, 1000.0]), min_size=1, max_size=20)


def test_rows_come_evenly_within_a_second() -> None:
    load = Load([10, 0, 4])
    assert [load.arrived(second) for second in (-1, 0, 0.5, 1, 1.7, 2.5, 3, 9)] == [
        *(0, 0, 5, 10, 10, 12, 14, 14)
    ]
    assert load.total == 14
    assert [load.rate(second) for second in (-1, 0.9, 1, 2, 3)] == [0, 10, 0, 4, 0]
    assert load.mean(0.5, 2.5) == 3.5


def test_a_row_comes_at_its_moment() -> None:
    load = Load([10, 0, 4])
    assert [load.when(rows) for rows in (0, 1, 10, 11, 14)] == [0, 0.1, 1, 2.25, 3]
    assert load.when(15) == math.inf


@given(RATES, st.floats(0, 1))
def test_when_is_the_first_moment_at_which_so_many_have_come(rates: list[float], share: float) -> None:
    load = Load(rates)
    rows = load.total * share
    assert load.arrived(load.when(rows)) == pytest.approx(rows)
    assert load.arrived(load.when(rows) - 0.01) < rows or rows == 0


@pytest.mark.parametrize("rates", [[], [1.0, -1.0], [math.nan], [math.inf]])
def test_a_load_has_rates_that_can_be(rates: list[float]) -> None:
    with pytest.raises(ValueError, match=r"at least one rate|from 0 up"):
        Load(rates)
