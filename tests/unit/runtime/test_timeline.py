"""Tests of the series kept for charts: bounded, and read from where a client's copy ends."""

from __future__ import annotations

from typing import Any

import pytest

from spark_elastic.core import events as ev
from spark_elastic.runtime.timeline import (
    BATCHES_KEPT,
    LOST_KEPT,
    SLOTS_KEPT,
    Capacity,
    Departure,
    Timeline,
    Usage,
)


def progress(at: int, query: str = "q", partitions: int = 4, **more: Any) -> ev.QueryProgress:
    return ev.QueryProgress(
        id=f"p{at}", at=at + 90, query=query, run="r", batch=at, started=at, duration_ms=80,
        input_rows_per_second=2.5, partitions=partitions, **more,
    )  # fmt: skip


def there(slots: int, executors: int = 1, wanted: int | None = None) -> Capacity:
    return Capacity(slots=slots, executors=executors, cores=2 * executors, wanted=wanted)


def lost(at: int) -> ev.ExecutorRemoved:
    return ev.ExecutorRemoved(id=f"e{at}", at=at, executor=str(at), reason="killed")


def added(at: int) -> ev.ExecutorAdded:
    return ev.ExecutorAdded(id=f"a{at}", at=at, executor=str(at), host="h", cores=1)


def test_batches_are_those_of_one_query_and_can_be_asked_for_from_a_time_on() -> None:
    series = Timeline()
    for at in (100, 200, 300):
        series.note(progress(at))
    series.note(progress(400, "other", partitions=1))
    (second, third) = series.batches("q", after=100)
    assert (second.at, third.at) == (200, 300)
    assert (third.duration_ms, third.partitions, third.input_rows_per_second) == (80, 4, 2.5)
    assert [batch.partitions for batch in series.batches("other")] == [1]
    assert series.batches("nobody") == []


def test_what_there_is_is_noted_only_when_it_changes() -> None:
    series = Timeline()
    for at, slots, wanted in ((100, 2, 2), (200, 2, 2), (300, 3, 2), (400, 3, None)):
        series.has(at, there(slots, wanted=wanted))
    changes = [(100, there(2, wanted=2)), (300, there(3, wanted=2)), (400, there(3))]
    assert series.capacity() == changes
    assert series.capacity(after=300) == changes[2:]
    assert series.slots() == [(100, 2), (300, 3)]
    assert series.slots(after=100) == [(300, 3)]


def test_executors_and_their_cores_are_used_for_as_long_as_they_are_there() -> None:
    series = Timeline()
    series.has(1_000, there(2, executors=1))
    assert series.usage == Usage(since=1_000)
    series.has(4_000, there(6, executors=3))
    # An event may have an earlier time than the one before it.
    series.has(3_000, there(6, executors=3))
    series.has(5_000, there(0, executors=0))
    series.has(9_000, there(0, executors=0))
    assert series.usage == Usage(since=1_000, executor_ms=3_000 + 3_000, core_ms=6_000 + 6_000)


def test_the_lag_is_the_wait_of_the_oldest_row_with_the_backlog() -> None:
    series = Timeline()
    series.note(progress(1_000, input_rows=5))
    # Rows may have come since the micro-batch before began.
    series.note(progress(3_000, input_rows=5))
    # 10 records at 2.5 rows per second.
    series.note(progress(4_000, input_rows=5, records_behind=10))
    assert [batch.lag_ms for batch in series.batches("q")] == [80, 2_080, 1_080 + 4_000]
    assert series.last_lag_ms("q") == 5_080
    assert series.last_lag_ms("nobody") == -1


def test_nothing_waits_while_a_query_is_idle_or_reads_nothing() -> None:
    series = Timeline()
    series.note(progress(1_000, input_rows=5))
    series.note(ev.QueryIdle(id="i", at=60_000, query="q", run="r"))
    series.note(progress(61_000, input_rows=5))
    series.note(progress(62_000, input_rows=0))
    assert [batch.lag_ms for batch in series.batches("q")] == [80, 1_080, 0]


def test_lost_executors_are_named_once_with_the_reason() -> None:
    series = Timeline()
    here = ev.ExecutorInfo(executor="5", host="h", cores=1)
    series.note(
        ev.Snapshot(
            id="s", at=1, application="a", application_name="n", spark_version="4.2.0", executors=(here,)
        )
    )
    series.note(added(6))
    for _ in range(3):
        series.note(lost(5))
    series.note(lost(7))
    assert series.lost() == [Departure(at=5, executor="5", reason="killed", released=False)]
    series.note(lost(6))
    assert series.lost(after=5) == [Departure(at=6, executor="6", reason="killed", released=False)]


def test_an_executor_that_was_to_go_is_released_and_not_lost() -> None:
    series = Timeline()
    for executor in (5, 6, 7):
        series.note(added(executor))
    series.note(ev.ExecutorDecommissioning(id="s", at=2, executor="5"))
    series.note(lost(5))
    series.note(ev.ExecutorRemoved(id="s", at=6, executor="6", reason="Executor killed by driver."))
    series.note(lost(7))
    assert [(one.executor, one.released) for one in series.lost()] == [("5", True), ("6", True), ("7", False)]


def test_nothing_grows_without_end() -> None:
    series = Timeline()
    many = 1_000
    for at in range(many):
        series.note(progress(at))
        series.note(added(at))
        series.note(lost(at))
        series.has(at, there(at))
    assert [batch.at for batch in series.batches("q")] == list(range(many - BATCHES_KEPT, many))
    assert len(series.capacity()) == SLOTS_KEPT
    assert len(series.lost()) == LOST_KEPT
    series.keep_only({"another"})
    assert series.batches("q") == []
    # A query that comes again under the same id has waited for nothing.
    series.note(progress(many + 5_000, input_rows=1))
    assert series.last_lag_ms("q") == 80


def test_before_anything_is_there_nothing_is_used() -> None:
    with pytest.raises(AssertionError):
        Timeline().usage  # noqa: B018  # the property itself raises
