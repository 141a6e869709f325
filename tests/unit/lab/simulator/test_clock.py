"""Tests that moments come in order, and that of two equal ones the one set first comes first."""

from __future__ import annotations

from functools import partial

from spark_elastic_lab.simulator.cluster import Clock


def test_moments_come_in_order() -> None:
    clock, seen = Clock(), list[str]()
    for when, what in ((30, "c"), (10, "a"), (30, "d"), (10.2, "b"), (99, "never")):
        clock.at(when, partial(seen.append, what))
    assert list(clock.run(50)) == [10, 11, 30, 30]
    assert seen == ["a", "b", "c", "d"]
    assert clock.now == 50


def test_a_name_is_there_once() -> None:
    clock, seen = Clock(), list[str]()
    clock.at(10, partial(seen.append, "old"), "x")
    clock.at(5, partial(seen.append, "new"), "x")
    clock.at(7, partial(seen.append, "y"), "y")
    clock.forget("y")
    clock.forget("nothing")
    assert list(clock.run(50)) == [5]
    assert seen == ["new"]


def test_nothing_happens_in_the_past_and_one_thing_leads_to_another() -> None:
    clock, seen = Clock(), list[int]()

    def happen() -> None:
        seen.append(clock.now)
        if len(seen) < 3:
            clock.at(1, happen, "again")

    clock.after(5, happen)
    assert list(clock.run(50)) == [5, 5, 5]
    assert seen == [5, 5, 5]
