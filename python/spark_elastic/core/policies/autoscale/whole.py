"""Executors are whole: slots are given back only where that frees one, and what is left of one is free."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from attrs import evolve, frozen

from spark_elastic.core.policies.wish import QueryWish

_MARGIN = 1.2
"""So much more than is needed is kept where slots have been added within the horizon."""


@frozen
class Weighed:
    """What was found for one query: its `wish`, the slots that are `current`, and whether it `may_wait`.

    One whose slots are of no use to it gives them back whatever that frees. One that `is_new` has not been
    granted any yet; one that was `raised_lately` might soon want back what is given back now. `of_all_slots`
    counts those that all queries together must have left for it to be in time: asked only where an executor
    could go.
    """

    wish: QueryWish
    current: int
    may_wait: bool = True
    is_new: bool = False
    of_all_slots: Callable[[], float] = float
    raised_lately: bool = False


def within_what_is_there(weighed: dict[str, Weighed], slots: int) -> dict[str, Weighed]:
    """Have queries of which nothing is known yet keep what there is together, of `slots` in all: no more."""
    new = {query: one for query, one in weighed.items() if one.wish.reason == "autoscale_measuring"}
    wanted = sum(one.wish.slots for one in weighed.values())
    measuring = sum(one.wish.slots for one in new.values())
    left = max(0, slots - wanted + measuring)
    if measuring <= left or not any(one.is_new for one in new.values()):
        return weighed
    return weighed | {
        query: evolve(one, wish=evolve(one.wish, slots=max(1, one.wish.slots * left // measuring)))
        for query, one in new.items()
    }


def in_whole_executors(weighed: Mapping[str, Weighed], slots_of_one: int) -> Mapping[str, QueryWish]:
    """Take back each step down that together with all others frees no executor of `slots_of_one` slots.

    So what two queries want, who go up and down by a slot or two, does not make an executor come and go.
    Slots of the last executor that nobody was granted are in use by then, so who goes up wants others.
    """
    wishes = {query: one.wish for query, one in weighed.items()}
    up = [query for query, one in weighed.items() if one.wish.slots > one.current]
    spare = -sum(one.current for one in weighed.values()) % max(1, slots_of_one)
    if up and spare and len(weighed) > 1:
        first = max(up, key=lambda query: wishes[query].slots - weighed[query].current)
        wishes[first] = evolve(wishes[first], slots=wishes[first].slots + spare)
    waits = [query for query, one in weighed.items() if one.may_wait and one.wish.slots < one.current]
    if not waits or slots_of_one <= 1:
        return wishes
    now = sum(one.current for one in weighed.values())
    wanted = sum(wish.slots for wish in wishes.values())
    before, after = -(-now // slots_of_one), -(-wanted // slots_of_one)
    raised = any(one.raised_lately for one in weighed.values())
    margin = _MARGIN if raised else 1.0
    needed = margin * max(one.of_all_slots() for one in weighed.values())
    least = min(before, math.ceil(needed / slots_of_one))
    # One that came within the horizon and may go again stays: a load that goes to and fro would want it back.
    if max(after, least) < before - raised:
        if after < least:
            last = max(waits, key=lambda query: weighed[query].current - wishes[query].slots)
            more = least * slots_of_one - wanted
            slots = min(weighed[last].current, wishes[last].slots + more)
            wishes[last] = evolve(wishes[last], slots=slots)
        return wishes
    kept = wanted + sum(weighed[query].current - wishes[query].slots for query in waits)
    if -(-kept // slots_of_one) > -(-now // slots_of_one):
        return wishes  # others go up, and use what is given back here
    for query in waits:
        one = weighed[query]
        numbers = {**one.wish.numbers, "fewer": one.wish.slots, "executor_slots": slots_of_one}
        wishes[query] = evolve(
            one.wish, slots=one.current, reason="autoscale_no_whole_executor", numbers=numbers,
            unsmoothed=one.wish.unsmoothed or one.wish.slots,
        )  # fmt: skip
    return wishes
