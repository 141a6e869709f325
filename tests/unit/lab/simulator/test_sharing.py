"""Tests that micro-batches share the slots, and that completed work stays completed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_elastic_lab.simulator.sharing import SharedSlots, fair_shares


def work(slots: float, shared: bool) -> float:
    """8 s of slot time."""
    return 8_000 / slots


@given(st.lists(st.integers(1, 40), max_size=6), st.integers(0, 60))
def test_shares_are_fair_and_waste_nothing(widths: list[int], slots: int) -> None:
    shares = fair_shares(widths, slots)
    assert sum(shares) == pytest.approx(min(slots, sum(widths)))
    assert all(0 <= share <= width for share, width in zip(shares, widths, strict=True))
    for share, width in zip(shares, widths, strict=True):
        # A batch with fewer slots than another one has all that it can use, give or take one slot.
        assert share >= min(width, max(shares) - 1)


def test_a_batch_alone_takes_as_long_as_its_slots_need() -> None:
    slots = SharedSlots(slots=4)
    slots.begin("a", 8, work, 1_000)
    assert slots.next_end() == (3_000, "a")
    slots.end("a", 3_000)
    assert slots.next_end() is None


def test_none_has_more_slots_than_tasks() -> None:
    slots = SharedSlots(slots=8)
    slots.begin("a", 2, work, 0)
    slots.begin("b", 8, work, 0)
    assert {query: batch.slots for query, batch in slots.running.items()} == {"a": 2, "b": 6}


def test_the_rest_goes_on_at_another_pace() -> None:
    slots = SharedSlots(slots=4)
    slots.begin("a", 8, work, 0)
    slots.begin("b", 8, work, 1_000)  # half of a is done
    assert slots.next_end() == (3_000, "a")
    slots.end("a", 3_000)  # half of b is done
    assert slots.next_end() == (4_000, "b")
    slots.resize(8, 3_500)
    assert slots.next_end() == (3_750, "b")


def test_without_slots_nothing_goes_on() -> None:
    slots = SharedSlots()
    slots.begin("a", 8, work, 0)
    assert slots.next_end() == (float("inf"), "a")
    slots.resize(4, 5_000)
    assert slots.next_end() == (7_000, "a")
    slots.resize(0, 6_000)
    assert slots.next_end() == (float("inf"), "a")
    slots.resize(4, 9_000)
    assert slots.next_end() == (10_000, "a")


def test_what_ran_on_a_lost_executor_is_done_again() -> None:
    slots = SharedSlots(slots=4)
    slots.begin("a", 8, work, 0)
    slots.resize(2, 1_000, lost=True)
    # Half was done and half of that is lost: 6 s of slot time are left for two slots.
    assert slots.next_end() == (4_000, "a")
    given_back = SharedSlots(slots=4)
    given_back.begin("a", 8, work, 0)
    given_back.resize(2, 1_000)
    assert given_back.next_end() == (3_000, "a")


def test_each_change_has_a_version() -> None:
    slots = SharedSlots(slots=1)
    slots.begin("a", 1, work, 0)
    before = slots.version
    slots.resize(2, 1)
    assert slots.version > before
