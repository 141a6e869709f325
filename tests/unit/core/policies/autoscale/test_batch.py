"""Tests of whether executors pay off for batch stages, whatever the measurements are."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_elastic.core.events import BatchStage
from spark_elastic.core.policies.autoscale.wishes import Price, batch_wish
from spark_elastic.core.policies.view import BatchMetrics, ClusterView, ExecutorMetrics
from spark_elastic.core.reasons.catalogue import message
from spark_elastic.core.settings import CoreSettings

works = st.floats(0, 1e9)
slots = st.floats(0, 1e4)
prices = st.builds(Price, each=st.integers(1, 64), ready_ms=st.floats(0, 600_000), gain=st.floats(0, 10))


@given(prices, works, slots, st.integers(1, 200))
def test_each_executor_saves_less_than_the_one_before(
    price: Price, work: float, free: float, more: int
) -> None:
    first, next_one = price.saves_ms(work, free, more), price.saves_ms(work, free, more + 1)
    if first < math.inf:
        assert next_one <= first + 1e-6 * max(1.0, work)


@given(prices, works, slots, st.integers(0, 300))
def test_all_that_are_worth_it_are_found_and_no_more(
    price: Price, work: float, free: float, most: int
) -> None:
    found = price.worth(work, free, most)
    assert 0 <= found <= most
    assert found == 0 or price.pays(work, free, found)
    assert found == most or not price.pays(work, free, found + 1)


@given(prices, works, st.floats(1, 1e4), st.floats(1, 4))
def test_more_work_is_never_worth_fewer(price: Price, work: float, free: float, times: float) -> None:
    assert price.worth(work * times, free, 100) >= price.worth(work, free, 100)


@given(st.floats(0, 29_999), st.floats(0.01, 64))
def test_work_that_is_over_before_an_executor_comes_gets_none(takes_ms: float, free: float) -> None:
    assert Price(each=4, ready_ms=30_000, gain=0.0).worth(takes_ms * free, free, 100) == 0


stages = st.builds(
    BatchStage,
    stage=st.integers(0, 3),
    tasks=st.integers(1, 10_000),
    done=st.integers(0, 10_000),
    running=st.integers(0, 100),
    run_ms=st.integers(0, 10**9),
)
batches = st.builds(
    BatchMetrics,
    stages=st.lists(stages, max_size=4).map(tuple),
    work_ms=works,
    crowded_ms=st.integers(0, 600_000),
    row=st.integers(0, 100),
    row_ms=works,
    active=st.just(True),
    executors=st.integers(0, 50),
)


def view(
    executors: int, each: int, needed: int = 0, waiting: tuple[tuple[int, int], ...] = ()
) -> ClusterView:
    shown = tuple(ExecutorMetrics(executor=str(n), slots=each, since=0) for n in range(executors))
    return ClusterView(
        at=1_000_000, mode="adaptive", slots=each * executors, usual_slots=each, executors=shown,
        waiting=waiting, needed=needed,
        settings=CoreSettings(mode="adaptive", policy=("autoscale",)),
    )  # fmt: skip


views = st.builds(
    view,
    executors=st.integers(0, 50),
    each=st.integers(1, 8),
    needed=st.integers(0, 100),
    waiting=st.lists(st.tuples(st.integers(0, 80), st.integers(0, 1_000_000)), max_size=3).map(tuple),
)


@given(views, batches)
def test_whatever_is_seen_no_more_is_wanted_than_has_a_task_and_it_can_be_told(
    seen: ClusterView, batch: BatchMetrics
) -> None:
    wish = batch_wish(seen, batch, 30_000, 1.0)
    most = -(-batch.left // seen.usual_slots)
    assert 0 <= wish.executors <= max(1, most)
    assert wish.executors >= 1 or seen.needed > 0
    assert message(wish.reason, **wish.numbers, before=batch.executors, after=wish.executors)


@pytest.mark.parametrize(
    ("there", "work_s", "wanted"),
    [
        (10, 20 * 40, 4),  # 40 slots work for 20 s, 16 slots for the 50 s of slotIdleTimeout
        (10, 50 * 40, 10),
        (10, 1, 1),
    ],
)
def test_those_that_are_here_stay_as_long_as_there_is_work_for_them(
    there: int, work_s: float, wanted: int
) -> None:
    batch = BatchMetrics(stages=(BatchStage(stage=1, tasks=400),), work_ms=work_s * 1_000, active=True)
    assert batch_wish(view(there, 4), batch, 600_000, 1.0).executors == wanted


def test_those_that_were_waited_for_have_to_be_worth_the_rest_of_their_start_up() -> None:
    batch = BatchMetrics(stages=(BatchStage(stage=1, tasks=400),), work_ms=400_000, active=True)

    def wanted(*waiting: tuple[int, int]) -> int:
        return batch_wish(view(1, 4, waiting=waiting), batch, 30_000, 1.0).executors

    # One executor takes 100 s: the second saves 35 s, the third 12 s, the fourth 6 s.
    assert wanted() == 2
    assert wanted((3, 1_000_000 - 10_000)) == 2
    assert wanted((3, 1_000_000 - 25_000)) == 3
    assert wanted((2, 1_000_000 - 25_000), (4, 1_000_000)) == 2
    assert wanted((9, 1_000_000 - 60_000)) == 9


def test_what_queries_need_is_not_there_for_batch_stages() -> None:
    batch = BatchMetrics(stages=(BatchStage(stage=1, tasks=400),), work_ms=1_500_000)
    alone = batch_wish(view(4, 4), batch, 30_000, 1.0).executors
    beside = batch_wish(view(4, 4, 16), batch, 30_000, 1.0).executors
    # 16 slots take 94 s, so an executor that takes 30 s to start does not pay off beside these 4. A fifth of
    # the slots takes 469 s, and three more executors save 244, 70 and 33 s.
    assert (alone, beside) == (4, 3)
