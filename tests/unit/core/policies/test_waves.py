"""Tests of the conversion between partitions and the slots that they keep busy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_elastic.core.policies.view import kept_busy, slots_that_keep_busy


@pytest.mark.parametrize(
    ("partitions", "slots", "busy"),
    [(8, 8, 8), (8, 16, 8), (8, 7, 4), (8, 4, 4), (80, 8, 80 / 10.5), (0, 4, 1)],
)
def test_few_waves_are_whole_and_of_many_the_last_is_half_full(
    partitions: int, slots: int, busy: float
) -> None:
    assert kept_busy(partitions, slots) == pytest.approx(busy)


@given(partitions=st.integers(1, 500), slots=st.integers(1, 200))
def test_as_many_slots_as_that_takes_keep_so_many_busy(partitions: int, slots: int) -> None:
    busy = kept_busy(partitions, slots)
    assert 1 <= busy <= max(1, min(partitions, slots))
    back = slots_that_keep_busy(partitions, busy)
    assert busy <= back + 1e-9
    assert back <= max(1.5 * busy, slots + 1e-9)
