"""Tests that a step up that made micro-batches slower is found, by the slots that were applied."""

from __future__ import annotations

from attrs import evolve

from spark_elastic.core.policies.autoscale.measured import made_worse
from tests.unit.core.policies.seen import batches


def test_a_step_that_made_batches_slower_is_found() -> None:
    found = made_worse((*batches(3, 1_000, 4, row=2), *batches(3, 1_000, 8, fixed=500, row=2)))
    assert found is not None
    assert (found.slots, found.more, found.before_ms, found.after_ms) == (4, 8, 600, 750)


def test_a_step_that_helps_a_little_is_left() -> None:
    assert made_worse((*batches(3, 1_000, 4), *batches(3, 1_000, 8))) is None


def test_more_rows_are_not_a_worse_step() -> None:
    # 1000 and 1390 rows count as one size, and the micro-batch takes longer, but each row takes less time.
    assert made_worse((*batches(3, 1_030, 4, fixed=0), *batches(3, 1_390, 5, fixed=10))) is None


def test_two_batches_prove_nothing() -> None:
    assert made_worse((*batches(3, 1_000, 4), *batches(2, 1_000, 8, fixed=900))) is None


def test_one_slow_batch_among_others_proves_nothing() -> None:
    after = batches(3, 1_000, 8)
    slow = evolve(after[0], duration_ms=9_000)
    assert made_worse((*batches(3, 1_000, 4), slow, *after[1:])) is None


def test_batches_in_which_slots_changed_prove_nothing() -> None:
    assert made_worse((*batches(3, 1_000, 4), *batches(3, 1_000, 8, fixed=900, steady=False))) is None
