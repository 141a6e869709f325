"""Tests that a trigger is derived from when micro-batches began."""

from __future__ import annotations

from random import Random

import pytest

from spark_elastic_lab.advice.trigger import find_trigger, missed
from tests.unit.lab.advice.facts import batch

BEGIN = 1_767_571_200_000


@pytest.mark.parametrize("interval", [200, 500, 1_000, 2_000, 5_000, 10_000, 60_000, 300_000])
def test_starts_at_multiples_show_the_interval(interval: int) -> None:
    chance = Random(1)
    batches = [
        batch(BEGIN + number * interval + chance.randint(0, min(15, interval // 20)), interval // 3)
        for number in range(30)
    ]
    found = find_trigger(batches)
    assert (found.interval_ms, found.known) == (interval, "found")


def test_micro_batches_that_overrun_are_late_and_do_not_count() -> None:
    starts, at = [], BEGIN
    for number in range(40):
        took = 5_600 if number % 3 == 0 else 900
        starts.append(batch(at + 4, took))
        at = max(-(-(at + 1) // 5_000) * 5_000, at + 4 + took)
    found = find_trigger(starts)
    assert (found.interval_ms, found.known) == (5_000, "found")
    passed, triggers = missed(starts, found.interval_ms)
    # The one after a late one begins late as well.
    assert passed == sum((one.started + one.took_ms) // 5_000 > one.started // 5_000 for one in starts)
    assert 13 <= passed <= 27
    assert triggers == 40


def test_starts_at_any_time_have_no_interval() -> None:
    chance, at, batches = Random(3), BEGIN, []
    for _ in range(40):
        at += 400 + chance.randint(30, 3_000)
        batches.append(batch(at, 400))
    found = find_trigger(batches)
    assert (found.interval_ms, found.known) == (0, "found")
    assert missed(batches, 0) == (0, 0)


def test_back_to_back_it_is_unknown() -> None:
    assert find_trigger([batch(BEGIN + number * 1_000, 1_000) for number in range(40)]).known == "unknown"
    assert find_trigger([]).known == "unknown"


def test_a_restart_is_no_wait() -> None:
    batches = [batch(BEGIN + number * 7_321, 1_000, run=f"r{number}") for number in range(40)]
    assert find_trigger(batches).known == "unknown"
