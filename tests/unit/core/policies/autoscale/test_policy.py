"""Tests of the whole policy: up at once, down after a window, with the reason that matters most."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from spark_elastic.core.policies.autoscale.wishes import Autoscale
from spark_elastic.core.policies.policy import QueryWish
from spark_elastic.core.policies.view import QueryMetrics, Sample, Wanted
from spark_elastic.core.reasons.catalogue import message
from tests.unit.core.builder import STATEFUL
from tests.unit.core.policies.seen import NOW, batches, query, sample, view

LOW = (Wanted(at=NOW - 400_000, last=NOW - 1_000, slots=2),)


def wish(metrics: QueryMetrics, **fields: int) -> QueryWish:
    """Ask about a query next to another one, so that its last executor is not filled up."""
    found = Autoscale().decide(view(metrics, query(query="other"), **fields)).queries["q"]
    numbers = {**found.told, "slots": 1}
    assert message(found.reason, **numbers, before=metrics.granted, after=found.slots)
    return found


@pytest.mark.parametrize("trigger", ["available_now", "once", "continuous", "real_time"])
def test_a_query_without_batches_that_repeat_is_left_to_its_bounds(trigger: Any) -> None:
    one = query(batches(5, 4_000, 4))
    other = evolve(one, facts=evolve(one.facts, trigger=trigger))
    assert Autoscale().decide(view(other)).queries == {}


def test_up_at_once_to_what_is_needed() -> None:
    found = wish(query(batches(6, 4_000, 4)))
    assert (found.slots, found.reason) == (6, "autoscale_up")


def test_within_the_band_nothing_changes() -> None:
    # 2800 rows on 4 slots take 800 ms: a load of 80 %, within the band of 65 to 85 % around 75 %.
    found = wish(query(batches(6, 2_800, 4), earlier=batches(6, 500, 4)))
    assert (found.slots, found.reason) == (4, "autoscale_keeps")
    narrow = query(batches(6, 2_800, 4), earlier=batches(6, 500, 4), settings={"load_band": 0.01})
    assert wish(narrow).slots == 5


def test_down_when_the_window_is_over_and_not_before() -> None:
    idle_half = batches(6, 1_000, 4)
    waits = wish(query(idle_half))
    assert (waits.slots, waits.reason, waits.until) == (4, "autoscale_down_waits", NOW + 300_000)
    found = wish(query(idle_half, wanted=LOW))
    assert (found.slots, found.reason) == (3, "autoscale_down"), "a part of the way, to see what that does"


def test_down_only_once_batches_have_run_with_what_there_is() -> None:
    fresh = query(batches(6, 1_000, 4), wanted=LOW, granted_at=NOW)
    assert wish(fresh).reason == "autoscale_settling"


def test_down_only_where_moving_the_state_is_worth_it() -> None:
    slow = query(
        batches(6, 2_200, 8), wanted=(evolve(LOW[0], slots=7),), facts=evolve(STATEFUL, trigger_ms=1_000)
    )
    found = wish(evolve(slow, pauses_ms=(60_000,), settings=evolve(slow.settings, load_band=0.0)))
    assert (found.slots, found.reason) == (8, "autoscale_down_dear")


def test_a_lower_bound_is_the_end_of_the_way_down() -> None:
    idle = query(batches(2, 10, 4), idle=True, wanted=LOW)
    assert wish(idle).slots == 2
    assert wish(evolve(idle, wanted=(evolve(LOW[0], slots=1),))).slots == 1


def test_slots_that_made_it_worse_are_given_back_at_once() -> None:
    worse = query(batches(6, 3_000, 8, fixed=600), earlier=batches(4, 3_000, 4), wanted=())
    found = wish(worse)
    assert (found.slots, found.reason) == (4, "autoscale_made_worse")


def test_a_first_batch_is_a_reason_only_with_an_interval_and_while_its_slots_are_all() -> None:
    first = sample(gap_ms=None, duration_ms=30_000)
    assert wish(query((first,), interval=0)).reason == "autoscale_measuring"
    assert wish(query((first,))).reason == "autoscale_first_batch"


SAMPLES = st.lists(
    st.builds(
        lambda number, rows, ms, slots, partitions, gap, behind, steady: sample(
            number, input_rows=rows, duration_ms=ms, slots=slots, partitions=partitions, gap_ms=gap,
            behind=behind, steady=steady,
        ),
        st.integers(0, 900), st.sampled_from([0, 1, 500, 1_000_000]), st.sampled_from([0, 1, 900, 100_000]),
        st.integers(0, 9), st.integers(0, 200), st.sampled_from([None, 1, 1_000, 100_000]),
        st.sampled_from([None, 0, 7, 10_000_000]), st.booleans(),
    ),
    max_size=20,
)  # fmt: skip


@given(
    samples=SAMPLES, earlier=SAMPLES, granted=st.none() | st.integers(1, 20), idle=st.booleans(),
    interval=st.sampled_from([0, 1_000, 60_000]), lag=st.sampled_from([None, 1_000, 30_000]),
    movable=st.booleans(),
)  # fmt: skip
def test_whatever_is_measured_there_is_a_wish_that_can_be_told(
    samples: list[Sample], earlier: list[Sample], granted: int | None, idle: bool, interval: int,
    lag: int | None, movable: bool,
) -> None:  # fmt: skip
    metrics = query(
        tuple(sorted(samples, key=lambda one: one.at)), earlier=tuple(earlier), granted=granted, idle=idle,
        interval=interval, settings={"max_lag_ms": lag}, movable=movable,
    )  # fmt: skip
    assert wish(metrics).slots >= 1
