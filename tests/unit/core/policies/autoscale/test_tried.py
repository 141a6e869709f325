"""Tests that measurements with fewer slots count more than the fitted line's estimate for them."""

from __future__ import annotations

from spark_elastic.core.policies.autoscale.measured import most_that_fell_short, tried
from tests.unit.core.policies.seen import batches


def test_slots_that_did_not_do_are_known() -> None:
    known = (*batches(2, 1_000, 4, fixed=100, row=4.0), *batches(2, 1_000, 8, fixed=100, row=4.0))
    assert most_that_fell_short(tried(known, 1_000, 100), 900) == 4, "with 8 they take 600 ms"
    assert most_that_fell_short(tried(known, 1_000, 100), 500) == 8
    assert most_that_fell_short(tried(known, 700, 100), 900) == 0, "fewer rows fit"


def test_one_slow_batch_and_batches_of_far_fewer_rows_tell_nothing() -> None:
    assert most_that_fell_short(tried(batches(1, 1_000, 4, row=4.0), 1_000, 100), 900) == 0
    assert most_that_fell_short(tried(batches(5, 100, 4, row=4.0), 1_000, 10), 100) == 0
    assert most_that_fell_short(tried((), 1_000, 100), 900) == 0
