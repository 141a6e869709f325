"""Tests of the model of a micro-batch's duration: a line that is fitted to the measurements."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_elastic.core.policies.autoscale.model import fit
from tests.unit.core.policies.seen import batches, sample


def test_without_a_batch_that_has_read_rows_nothing_is_known() -> None:
    assert fit(()) is None
    assert fit([sample(input_rows=0), sample(duration_ms=0)]) is None


def test_batches_in_which_slots_changed_count_where_there_are_no_others() -> None:
    odd = sample(duration_ms=9_000, steady=False)
    found = fit([odd, *batches(3, 1_000, 4)])
    assert found is not None
    assert found.batch_ms(1_000, 4) == pytest.approx(350)
    alone = fit([odd])
    assert alone is not None
    assert alone.batch_ms(1_000, 4) == pytest.approx(9_000)


@given(
    fixed=st.floats(50, 2_000),
    row=st.floats(0.5, 20),
    loads=st.lists(st.sampled_from([200, 400, 800, 1_600]), min_size=4, max_size=4, unique=True),
    slots=st.integers(1, 16),
)
def test_both_parts_are_found_where_batches_differ(
    fixed: float, row: float, loads: list[int], slots: int
) -> None:
    found = fit([one for rows in loads for one in batches(3, rows, slots, fixed=fixed, row=row)])
    assert found is not None
    assert found.separates
    for rows in loads:
        assert found.batch_ms(rows, slots) == pytest.approx(fixed + row * rows / slots, rel=0.05)
    assert found.batch_ms(1_000, 2 * slots) == pytest.approx(fixed + row * 500 / slots, rel=0.1)


def test_a_few_odd_batches_move_nothing() -> None:
    seeded = random.Random(7)
    measured = [one for rows in (500, 1_000, 2_000, 4_000) for one in batches(5, rows, 4)]
    seeded.shuffle(measured)
    odd = [sample(duration_ms=20_000, input_rows=800), sample(duration_ms=9_000, input_rows=3_000)]
    found = fit([*odd, *measured])
    assert found is not None
    assert found.fixed_ms == pytest.approx(100, rel=0.1)
    assert found.row_ms == pytest.approx(1, rel=0.1)


def test_batches_of_one_size_do_not_tell_the_parts_apart() -> None:
    found = fit(batches(10, 1_000, 4))
    assert found is not None
    assert not found.separates
    assert found.batch_ms(1_000, 4) == pytest.approx(350)
    assert 0 < found.fixed_ms <= 175


def test_one_batch_is_enough_for_advice_and_more_are_trusted_more() -> None:
    one, many = fit(batches(1, 1_000, 4)), fit(batches(15, 1_000, 4))
    assert one is not None
    assert many is not None
    assert 0 < one.confidence < many.confidence < 1


def test_what_batches_take_by_now_counts_more_than_what_they_took() -> None:
    before = [one for rows in (500, 1_000, 2_000) for one in batches(4, rows, 4)]
    now = batches(5, 1_000, 4, fixed=200, row=2)
    found = fit([*before, *now])
    assert found is not None
    assert found.batch_ms(1_000, 4) == pytest.approx(700, rel=0.02)


def test_partitions_that_do_not_fill_their_waves_count_as_the_slots_they_keep_busy() -> None:
    # 9 tasks on 8 slots take two waves, as long as on 5 slots.
    assert sample(partitions=9, slots=8).parallelism == 4.5
    assert sample(partitions=4, slots=8).parallelism == 4
    assert sample(partitions=8, slots=0).parallelism == 1
