"""Tests of scaling down: to the highest wish of the last window, and by a limited step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_elastic.core.policies.autoscale.wishes import Down, most_wanted, one_step
from spark_elastic.core.policies.memory import QueryMemory
from spark_elastic.core.policies.view import Wanted


def seen(*counts: int, window: int = 10) -> QueryMemory:
    """Record these wishes, one per ms from 1 ms on."""
    memory = QueryMemory()
    for at, slots in enumerate(counts, 1):
        memory.wants(at, slots, window)
    return memory


def test_the_example_of_kubernetes() -> None:
    # Kubernetes' example: the highest of 10 9 8 9 9 8 9 8 9 8 is 10; when 7 comes, the 10 leaves the window
    # and 9 is the highest.
    memory = seen(10, 9, 8, 9, 9, 8, 9, 8, 9, 8)
    assert most_wanted(memory.wanted, 8, 10, 10, 10).slots == 10
    memory.wants(11, 7, 10)
    assert most_wanted(memory.wanted, 7, 11, 10, 10) == Down(slots=9, until=19)


def test_nothing_goes_before_the_window_is_full() -> None:
    assert most_wanted((), 2, 100, 50, 8) == Down(slots=8, until=150)
    assert most_wanted((Wanted(at=60, last=99, slots=2),), 2, 100, 50, 8) == Down(slots=8, until=110)
    assert most_wanted((Wanted(at=50, last=99, slots=2),), 2, 100, 50, 8) == Down(slots=2)


def test_without_a_window_it_goes_at_once() -> None:
    assert most_wanted((), 2, 100, 0, 8) == Down(slots=2)


@given(
    wanted=st.lists(st.integers(1, 20), min_size=1, max_size=60),
    window=st.integers(1, 20),
)
def test_what_is_remembered_gives_the_most_of_every_window(wanted: list[int], window: int) -> None:
    memory = QueryMemory()
    for at, slots in enumerate(wanted, 1):
        memory.wants(at, slots, window)
        memory.validate()
        if at > window:
            found = most_wanted(memory.wanted, slots, at, window, 20)
            assert found.slots == max(wanted[at - window : at])


@pytest.mark.parametrize(
    ("current", "target", "factor", "step"),
    [(10, 1, 0.6, 4), (10, 1, 0.5, 5), (10, 8, 0.6, 8), (2, 1, 0.1, 1), (10, 1, 1.0, 1)],
)
def test_no_more_than_a_part_goes_in_one_step(current: int, target: int, factor: float, step: int) -> None:
    # With a factor of 0.6, 10 slots go to 4 in one step; with 0.5, to 5.
    assert one_step(current, target, factor) == step
