"""Tests of the backlog, and of the time until it is cleared."""

from __future__ import annotations

import pytest

from spark_elastic.core.policies.autoscale.model import Backlog, BatchTime, Inflow, Objective, backlog
from tests.unit.core.policies.seen import sample

EACH_SECOND = Objective(interval_ms=1_000, load=0.75)
LINE = BatchTime(fixed_ms=100, row_ms=1, samples=10, error=0, separates=True)


def test_what_comes_in_ten_seconds_is_no_backlog() -> None:
    assert backlog(Inflow(rows_per_ms=1, behind=10_000), sample(), EACH_SECOND, 600_000) is None
    found = backlog(Inflow(rows_per_ms=1, behind=60_000), sample(), EACH_SECOND, 600_000)
    assert found == Backlog(rows=60_000, within_ms=600_000)
    assert found.rows_per_ms == pytest.approx(0.1)


def test_a_lag_that_is_shorter_than_the_time_to_catch_up_counts() -> None:
    hurried = Objective(interval_ms=1_000, load=0.75, max_lag_ms=30_000)
    found = backlog(Inflow(rows_per_ms=1, behind=60_000), sample(), hurried, 600_000)
    assert found is not None
    assert found.within_ms == 30_000


def test_what_came_in_while_a_batch_took_too_long_waits_too() -> None:
    long = sample(duration_ms=61_000)
    found = backlog(Inflow(rows_per_ms=1, behind=None), long, EACH_SECOND, 600_000)
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
