"""Tests of the backlog, and of the time until it is cleared."""

from __future__ import annotations

import pytest

from spark_elastic.core.policies.autoscale.model import (
    Backlog,
    BatchTime,
    Inflow,
    Objective,
    backlog,
    growth,
    rows_waiting,
)
from tests.unit.core.policies.seen import sample

EACH_SECOND = Objective(interval_ms=1_000, load=0.75)
LINE = BatchTime(fixed_ms=100, row_ms=1, samples=10, error=0, separates=True)


def test_what_comes_in_ten_seconds_is_no_backlog() -> None:
    comes_in = Inflow(rows_per_ms=1)
    assert backlog(10_000, comes_in, EACH_SECOND, 600_000) is None
    assert backlog(60_000, comes_in, EACH_SECOND, 600_000) == Backlog(rows=60_000, within_ms=600_000)


def test_a_lag_that_is_shorter_than_the_time_to_catch_up_counts() -> None:
    hurried = Objective(interval_ms=1_000, load=0.75, max_lag_ms=30_000)
    found = backlog(60_000, Inflow(rows_per_ms=1), hurried, 600_000)
    assert found is not None
    assert found.within_ms == 29_000, "a row has waited for an interval when its batch begins"


def test_a_lag_makes_less_a_backlog_where_intervals_are_long() -> None:
    comes_in = Inflow(rows_per_ms=1)
    calm = Objective(interval_ms=10_000, load=0.75)
    hurried = Objective(interval_ms=10_000, load=0.75, max_lag_ms=30_000)
    assert backlog(15_000, comes_in, calm, 600_000) is None
    assert backlog(15_000, comes_in, hurried, 600_000) == Backlog(rows=15_000, within_ms=20_000)


def test_rows_wait_that_came_in_while_a_batch_took_too_long() -> None:
    comes_in = Inflow(rows_per_ms=1, behind=500)
    assert rows_waiting(comes_in, sample(), EACH_SECOND, runs=False) == 500
    assert rows_waiting(comes_in, sample(duration_ms=61_000), EACH_SECOND, runs=False) == 60_500
    # None of the rows of a batch that still runs is processed, but those of one interval are no backlog.
    running = sample(input_rows=5_000, duration_ms=61_000)
    assert rows_waiting(comes_in, running, EACH_SECOND, runs=True) == 4_500


def test_a_backlog_grows_by_what_slots_do_not_process_until_there_are_more() -> None:
    comes_in = Inflow(rows_per_ms=5)
    assert growth(LINE, comes_in, EACH_SECOND, slots=4, ready_ms=30_000) == pytest.approx(30_000)
    assert growth(LINE, comes_in, EACH_SECOND, slots=6, ready_ms=30_000) == 0
    assert backlog(0, comes_in, EACH_SECOND, 600_000, grows=30_000) is None
    found = backlog(30_000, comes_in, EACH_SECOND, 600_000, grows=30_000)
    assert found == Backlog(rows=60_000, within_ms=600_000)


def test_the_forecast_is_by_what_is_left_of_the_capacity() -> None:
    piled_up = Backlog(rows=60_000, within_ms=600_000)
    comes_in = Inflow(rows_per_ms=2, behind=60_000)
    # 4 slots process 4 rows per ms, of which arriving rows take 2.
    assert piled_up.gone_in_ms(LINE, comes_in, EACH_SECOND, 4) == pytest.approx(30_000)
    assert piled_up.gone_in_ms(LINE, comes_in, EACH_SECOND, 2) is None
    # A source limit of 2500 rows per second leaves 0.5 rows per ms for the backlog.
    limited = Inflow(rows_per_ms=2, behind=60_000, limited=True, batch_rows=2_500)
    assert piled_up.gone_in_ms(LINE, limited, EACH_SECOND, 4) == pytest.approx(120_000)
