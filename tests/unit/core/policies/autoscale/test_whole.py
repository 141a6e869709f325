"""Tests that executors are scaled as a whole: a step down must free one, and a recent one stays."""

from __future__ import annotations

from typing import Any

from spark_elastic.core.policies.autoscale.wishes import Weighed, in_whole_executors, within_what_is_there
from spark_elastic.core.policies.policy import QueryWish


def weighed(slots: int, current: int, reason: str = "autoscale_down", **fields: Any) -> Weighed:
    return Weighed(QueryWish(slots=slots, reason=reason), current, **fields)


def asked(*each: Weighed, of: int = 4) -> list[tuple[int, str]]:
    found = in_whole_executors({str(number): one for number, one in enumerate(each)}, of)
    return [(wish.slots, wish.reason) for wish in found.values()]


def test_a_part_of_an_executor_is_not_given_back() -> None:
    assert asked(weighed(5, 8), weighed(3, 4)) == [(5, "autoscale_down"), (3, "autoscale_down")]
    assert asked(weighed(7, 8), weighed(4, 4, "autoscale_keeps")) == [
        (8, "autoscale_no_whole_executor"),
        (4, "autoscale_keeps"),
    ]
    assert asked(weighed(7, 8), of=1) == [(7, "autoscale_down")]


def test_what_one_gives_back_another_one_may_have() -> None:
    assert asked(weighed(6, 8), weighed(6, 4, "autoscale_up")) == [(6, "autoscale_down"), (6, "autoscale_up")]


def test_what_is_of_no_use_is_given_back_whatever_it_frees() -> None:
    useless = weighed(7, 8, "autoscale_made_worse", may_wait=False)
    assert asked(useless) == [(7, "autoscale_made_worse")]


def test_slots_of_the_last_executor_are_in_use_already() -> None:
    # 6 of 8 slots were granted, but the other two are in use as well: one more needs a third executor.
    assert asked(weighed(5, 4, "autoscale_up"), weighed(2, 2, "autoscale_keeps")) == [
        (7, "autoscale_up"),
        (2, "autoscale_keeps"),
    ]


def test_no_more_is_given_back_than_the_batches_of_all_allow() -> None:
    assert asked(weighed(4, 16, of_all_slots=7.0)) == [(8, "autoscale_down")]
    assert asked(weighed(4, 16, of_all_slots=15.0)) == [(16, "autoscale_no_whole_executor")]


def test_an_executor_that_came_lately_stays() -> None:
    assert asked(weighed(4, 8, raised_lately=True)) == [(8, "autoscale_no_whole_executor")]
    assert asked(weighed(4, 12, raised_lately=True)) == [(4, "autoscale_down")]


def test_queries_of_which_nothing_is_known_keep_what_is_there_together() -> None:
    new = weighed(8, 8, "autoscale_measuring", is_new=True)
    old = weighed(12, 12, "autoscale_measuring")
    busy = weighed(6, 6, "autoscale_keeps")
    found = within_what_is_there({"new": new, "old": old, "busy": busy}, 16)
    assert {name: one.wish.slots for name, one in found.items()} == {"new": 4, "old": 6, "busy": 6}
    assert within_what_is_there({"old": old, "busy": busy}, 16)["old"] == old, "it may be waiting for some"
