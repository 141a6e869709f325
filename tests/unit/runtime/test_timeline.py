"""Tests of the series kept for charts: bounded, and read from where a client's copy ends."""

from __future__ import annotations

from spark_elastic.core import events as ev
from spark_elastic.runtime.timeline import BATCHES_KEPT, LOST_KEPT, SLOTS_KEPT, Departure, Timeline


def progress(at: int, query: str = "q", partitions: int = 4) -> ev.QueryProgress:
    return ev.QueryProgress(
        id=f"p{at}", at=at + 90, query=query, run="r", batch=at, started=at, duration_ms=80,
        input_rows_per_second=2.5, partitions=partitions,
    )  # fmt: skip


def lost(at: int) -> ev.ExecutorRemoved:
    return ev.ExecutorRemoved(id=f"e{at}", at=at, executor=str(at), reason="killed")


def added(at: int) -> ev.ExecutorAdded:
    return ev.ExecutorAdded(id=f"a{at}", at=at, executor=str(at), host="h", cores=1)


def test_batches_are_those_of_one_query_and_can_be_asked_for_from_a_time_on() -> None:
    series = Timeline()
    for at in (100, 200, 300):
        series.note(progress(at), 4)
    series.note(progress(400, "other", partitions=1), 4)
    (second, third) = series.batches("q", after=100)
    assert (second.at, third.at) == (200, 300)
    assert (third.duration_ms, third.partitions, third.input_rows_per_second) == (80, 4, 2.5)
    assert [batch.partitions for batch in series.batches("other")] == [1]
    assert series.batches("nobody") == []


def test_slots_are_noted_only_when_they_change() -> None:
    series = Timeline()
    for at, slots in ((100, 2), (200, 2), (300, 3), (400, 2)):
        series.note(ev.QueryStarted(id="i", at=at, query="q", run="r", partitions=2), slots)
    assert series.slots() == [(100, 2), (300, 3), (400, 2)]
    assert series.slots(after=300) == [(400, 2)]


def test_lost_executors_are_named_once_with_the_reason() -> None:
    series = Timeline()
    here = ev.ExecutorInfo(executor="5", host="h", cores=1)
    series.note(
        ev.Snapshot(
            id="s", at=1, application="a", application_name="n", spark_version="4.2.0", executors=(here,)
        ),
        1,
    )
    series.note(added(6), 2)
    for _ in range(3):
        series.note(lost(5), 1)
    series.note(lost(7), 1)
    assert series.lost() == [Departure(at=5, executor="5", reason="killed", released=False)]
    series.note(lost(6), 0)
    assert series.lost(after=5) == [Departure(at=6, executor="6", reason="killed", released=False)]


def test_an_executor_that_was_to_go_is_released_and_not_lost() -> None:
    series = Timeline()
    for executor in (5, 6, 7):
        series.note(added(executor), 1)
    series.note(ev.ExecutorDecommissioning(id="s", at=2, executor="5"), 1)
    series.note(lost(5), 1)
    series.note(ev.ExecutorRemoved(id="s", at=6, executor="6", reason="Executor killed by driver."), 1)
    series.note(lost(7), 1)
    assert [(one.executor, one.released) for one in series.lost()] == [("5", True), ("6", True), ("7", False)]


def test_nothing_grows_without_end() -> None:
    series = Timeline()
    many = 1_000
    for at in range(many):
        series.note(progress(at), at)
        series.note(added(at), at)
        series.note(lost(at), at)
    assert [batch.at for batch in series.batches("q")] == list(range(many - BATCHES_KEPT, many))
    assert len(series.slots()) == SLOTS_KEPT
    assert len(series.lost()) == LOST_KEPT
    series.keep_only({"another"})
    assert series.batches("q") == []
