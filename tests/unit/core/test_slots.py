"""Slots: counted from executors, shared out between groups of vertices."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_elastic.core import events as ev
from spark_elastic.core.requirements import Bounds, Vertex, desired_slots, needed_slots
from spark_elastic.core.slots import SlotPool, allocate
from spark_elastic.core.task_size import TaskSize


def event(kind: type[ev.Event], executor: str, **fields: Any) -> ev.Event:
    return kind(**{"id": "s1", "at": 1, "executor": executor, **fields})


def test_a_life_of_an_executor() -> None:
    pool = SlotPool(task=TaskSize(cpus=2))
    for happens, total in [
        (event(ev.ExecutorAdded, "0", host="h", cores=5), 2),
        (event(ev.ExecutorAdded, "1", host="h", cores=1), 2),
        (event(ev.ExecutorAdded, "1", host="h", cores=4), 4),
        (event(ev.ExecutorExcluded, "0"), 2),
        (event(ev.ExecutorExcluded, "0"), 2),
        (event(ev.ExecutorDecommissioning, "0"), 2),
        (event(ev.ExecutorUnexcluded, "0"), 2),
        (event(ev.ExecutorRemoved, "0"), 2),
        (event(ev.ExecutorRemoved, "0"), 2),
        (event(ev.ExecutorExcluded, "9"), 2),
    ]:
        pool.apply(happens)
        pool.validate()
        assert pool.total == total
    assert list(pool.executors) == ["1"]


def test_a_snapshot_leaves_nothing_of_who_is_gone() -> None:
    pool = SlotPool()
    for executor in "01":
        pool.apply(event(ev.ExecutorAdded, executor, host="h", cores=2))
        pool.apply(event(ev.ExecutorUsage, executor, cached_bytes=1, shuffle_bytes=2))
    pool.replace([ev.ExecutorInfo(executor="1", host="h", cores=2)], TaskSize())
    pool.validate()
    assert (pool.held_bytes("0"), pool.held_bytes("1")) == (0, 3)
    assert pool.usable == {"1": 2}


def test_bounds_defend_themselves() -> None:
    with pytest.raises(ValueError, match="lower bound 3 is above upper bound 2"):
        Bounds(lower=3, upper=2)
    with pytest.raises(ValueError, match="must be >= 1"):
        Bounds(lower=0, upper=2)


@st.composite
def vertices(draw: st.DrawFn) -> list[Vertex]:
    result = []
    for number in range(draw(st.integers(1, 6))):
        lower = draw(st.integers(1, 20))
        bounds = Bounds(lower=lower, upper=draw(st.integers(lower, 60)))
        result.append(Vertex(id=f"v{number}", group=draw(st.sampled_from("abc")), bounds=bounds))
    return result


@settings(max_examples=50, deadline=None)
@given(vertices=vertices(), slots=st.integers(0, 300))
def test_shares_keep_within_bounds_and_slots(vertices: list[Vertex], slots: int) -> None:
    shares = allocate(vertices, slots)
    if slots < needed_slots(vertices):
        assert shares is None
        return
    assert shares is not None
    for vertex in vertices:
        assert vertex.bounds.lower <= shares[vertex.id] <= vertex.bounds.upper
    groups = {vertex.group for vertex in vertices}
    used = sum(max(shares[v.id] for v in vertices if v.group == group) for group in groups)
    assert used <= min(slots, desired_slots(vertices))


@settings(max_examples=50, deadline=None)
@given(vertices=vertices(), slots=st.integers(0, 300))
def test_one_more_slot_takes_nothing_away(vertices: list[Vertex], slots: int) -> None:
    fewer, more = allocate(vertices, slots), allocate(vertices, slots + 1)
    if fewer is not None:
        assert more is not None
        assert sum(more.values()) >= sum(fewer.values())
