"""Tests of slots as the executors provide them."""

from __future__ import annotations

from typing import Any

from spark_elastic.core import events as ev
from spark_elastic.core.cluster.slots import SlotPool, TaskSize


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


def test_why_an_executor_is_excluded_is_known_as_long_as_it_is() -> None:
    pool = SlotPool()
    for executor in "012":
        pool.apply(event(ev.ExecutorAdded, executor, host="h", cores=2))
        pool.apply(event(ev.ExecutorExcluded, executor, reason="2 tasks failed on it"))
    pool.apply(event(ev.ExecutorExcluded, "9", reason="nobody"))
    pool.apply(event(ev.ExecutorUnexcluded, "0"))
    pool.apply(event(ev.ExecutorRemoved, "1"))
    pool.validate()
    assert pool.exclusions == {"2": "2 tasks failed on it"}
    still = ev.ExecutorInfo(executor="2", host="h", cores=2, excluded=True)
    pool.replace([still, ev.ExecutorInfo(executor="0", host="h", cores=2, excluded=True)], TaskSize())
    pool.validate()
    assert pool.exclusions == {"2": "2 tasks failed on it"}
    pool.replace([ev.ExecutorInfo(executor="2", host="h", cores=2)], TaskSize())
    pool.validate()
    assert pool.exclusions == {}


def test_a_snapshot_leaves_nothing_of_who_is_gone() -> None:
    pool = SlotPool()
    for executor in "01":
        pool.apply(event(ev.ExecutorAdded, executor, host="h", cores=2))
        pool.apply(event(ev.ExecutorUsage, executor, cached_bytes=1, shuffle_bytes=2))
    pool.replace([ev.ExecutorInfo(executor="1", host="h", cores=2)], TaskSize())
    pool.validate()
    assert (pool.held_bytes("0"), pool.held_bytes("1")) == (0, 3)
    assert pool.usable == {"1": 2}
