"""A query's handle behaves as plain Spark's while the runs beneath it come and go.

The policy is a stand-in that restarts queries at known moments: see scripted_policy.py.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from integration.streaming.files import Inbox
from integration.streaming.waiting import PATIENCE_S, eventually
from integration.streaming.world import World, feed_until_restarted, stream, totals

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

# What makes Spark's stream thread die of a stack overflow when it looks whether an error is an interrupt.
FATAL_TEXT = "py4j.protocol.Py4JJavaError: An error occurred while calling o1.count. " + "x\n" * 100_000


def is_active(query: StreamingQuery) -> bool:
    """Ask the query; read as an attribute, mypy takes it to stay as it was."""
    return query.isActive


def collected(table: DataFrame) -> dict[int, tuple[int, int]]:
    return {row.key: (row.n, row.total) for row in table.collect()}


def failure(call: Callable[[], Any]) -> str:
    """Return the text of what a call raises."""
    with pytest.raises(Exception) as raised:  # noqa: PT011  # Spark's own, whatever class PySpark gives it
        call()
    return str(raised.value)


def test_three_restarts_look_like_one_run(world: World, inbox: Inbox) -> None:
    world.policy.order(every=2)
    query = (
        totals(world.spark, inbox)
        .writeStream.format("memory")
        .queryName("one_run")
        .outputMode("complete")
        .start()
    )
    identity = (query.id, query.runId, query.name)
    mine = world.temporary_checkpoints()
    feed_until_restarted(world, inbox, query, 3)

    assert (query.id, query.runId, query.name) == identity
    assert query.name == "one_run"
    assert is_active(query)
    assert query.exception() is None
    assert set(query.status) == {"message", "isDataAvailable", "isTriggerActive"}
    assert query.awaitTermination(1) is False
    assert [q.id for q in world.spark.streams.active] == [query.id]
    found = world.spark.streams.get(query.id)
    assert found is not None
    assert found.runId == query.runId
    assert world.spark.streams.awaitAnyTermination(1) is False
    assert world.temporary_checkpoints() == mine != set()

    for _ in range(3):
        inbox.put(2)
        query.processAllAvailable()
        assert collected(world.spark.table("one_run")) == inbox.totals()

    progress = query.recentProgress
    assert query.lastProgress is not None
    assert query.lastProgress["batchId"] == progress[-1]["batchId"]
    assert {(p["id"], p["runId"], p["name"]) for p in progress} == {identity}
    batches = [p["batchId"] for p in progress if p["numInputRows"] > 0]
    assert batches == sorted(set(batches))
    assert sum(p["numInputRows"] for p in progress) == inbox.rows

    query.stop()
    assert not is_active(query)
    assert query.awaitTermination(1) is True
    assert query.exception() is None
    assert world.spark.streams.active == []
    assert world.spark.streams.get(query.id) is None
    eventually(lambda: not world.temporary_checkpoints() & mine, "the temporary checkpoint is deleted")
    eventually(lambda: world.listener.of(query, "terminated"), "the listener heard of the end")
    assert world.listener.of(query, "started") == [(identity[1], -1)]
    assert world.listener.of(query, "terminated") == [(identity[1], -1)]
    heard = world.listener.of(query, "progress")
    assert {run for run, _ in heard} == {identity[1]}
    assert set(batches) <= {batch for _, batch in heard}


def test_streams_of_a_new_session_are_its_own(world: World, inbox: Inbox, tmp_path: Path) -> None:
    world.policy.order(every=1)
    other = world.spark.newSession()
    query = (
        stream(other, inbox)
        .writeStream.format("memory")
        .queryName("in_another")
        .trigger(processingTime="100 milliseconds")
        .start()
    )
    feed_until_restarted(world, inbox, query, 3)
    assert [q.id for q in other.streams.active] == [query.id]
    assert world.spark.streams.active == []
    assert other.streams.awaitAnyTermination(1) is False
    query.processAllAvailable()
    assert sorted(row.value for row in other.table("in_another").collect()) == inbox.values()
    query.stop()
    assert other.streams.awaitAnyTermination(1) is True
    assert world.spark.streams.awaitAnyTermination(1) is False
    other.streams.resetTerminated()
    assert other.streams.awaitAnyTermination(1) is False


def test_a_query_of_a_cloned_session_is_restarted_too(world: World, inbox: Inbox) -> None:
    world.policy.order(every=1)
    clone = SparkSession(world.spark.sparkContext, world.spark._jsparkSession.cloneSession())
    query = totals(clone, inbox).writeStream.format("noop").outputMode("update").start()
    feed_until_restarted(world, inbox, query, 1)
    assert is_active(query)
    query.stop()
    assert not is_active(query)


@pytest.mark.parametrize(
    ("interval", "batch_s", "files"),
    [("0 seconds", 2.0, 7), ("100 milliseconds", 0.05, 16)],
    ids=["long_batches", "short_sleeps_between"],
)
def test_no_batch_is_interrupted_or_repeated(
    world: World, inbox: Inbox, interval: str, batch_s: float, files: int
) -> None:
    begun: list[int] = []
    ended: list[int] = []
    values: list[int] = []

    def slowly(batch: DataFrame, number: int) -> None:
        begun.append(number)
        values.extend(row.value for row in batch.collect())
        time.sleep(batch_s)
        ended.append(number)

    inbox.put(files)
    world.policy.order(every=1)
    query = (
        stream(world.spark, inbox).writeStream.foreachBatch(slowly).trigger(processingTime=interval).start()
    )
    query.processAllAvailable()
    assert world.policy.restarts(query.id) >= 3
    query.stop()
    assert begun == ended == list(range(files))
    assert sorted(values) == inbox.values()
    assert query.exception() is None


@pytest.mark.parametrize("trigger", [{"availableNow": True}, {"once": True}], ids=["available_now", "once"])
def test_a_trigger_that_ends_does_so_with_all_data(
    world: World, inbox: Inbox, tmp_path: Path, trigger: dict[str, bool]
) -> None:
    inbox.put(5)
    world.policy.order(every=2)
    sink = tmp_path / "out"
    query = (
        stream(world.spark, inbox)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(**trigger)
        .start(str(sink))
    )
    assert query.awaitTermination(int(PATIENCE_S)) is True
    assert query.exception() is None
    assert sorted(row.value for row in world.spark.read.parquet(str(sink)).collect()) == inbox.values()
    assert world.spark.streams.awaitAnyTermination(1) is True


def test_a_console_sink_prints_batch_after_batch(world: World, inbox: Inbox) -> None:
    world.policy.order(every=1)
    before = len(world.driver.printed())
    query = stream(world.spark, inbox).writeStream.format("console").start()
    feed_until_restarted(world, inbox, query, 2)
    query.processAllAvailable()
    assert is_active(query)
    query.explain()
    query.stop()
    assert query.exception() is None
    batches = re.findall(r"^Batch: (\d+)$", world.driver.printed()[before:], re.MULTILINE)
    assert batches == [str(number) for number in range(len(batches))]
    assert len(batches) * 10 == inbox.rows


def start_twice(
    world: World, inbox: Inbox, checkpoint: Path, spark: SparkSession, name: str | None = None
) -> StreamingQuery:
    writer = stream(spark, inbox).writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    return (writer.queryName(name) if name else writer).start()


@pytest.mark.parametrize("between_runs", [False, True], ids=["running", "between_runs"])
def test_a_second_query_on_one_checkpoint_is_refused(
    world: World, inbox: Inbox, tmp_path: Path, between_runs: bool
) -> None:
    key = "spark.sql.streaming.stopActiveRunOnRestart"
    world.spark.conf.set(key, "false")
    try:
        first = start_twice(world, inbox, tmp_path / "checkpoint", world.spark)
        inbox.put()
        first.processAllAvailable()
        if between_runs:
            stop_between_runs(world, inbox, first)
        text = failure(lambda: start_twice(world, inbox, tmp_path / "checkpoint", world.spark))
        assert "another query with same id is already active" in text
        assert is_active(first)
        world.policy.order()
        inbox.put()
        first.processAllAvailable()
        assert [q.id for q in world.spark.streams.active] == [first.id]
    finally:
        world.spark.conf.unset(key)


@pytest.mark.parametrize("between_runs", [False, True], ids=["running", "between_runs"])
def test_as_spark_does_by_default_a_second_query_on_one_checkpoint_ends_the_first(
    world: World, inbox: Inbox, tmp_path: Path, between_runs: bool
) -> None:
    first = start_twice(world, inbox, tmp_path / "checkpoint", world.spark)
    inbox.put()
    first.processAllAvailable()
    if between_runs:
        stop_between_runs(world, inbox, first)
    second = start_twice(world, inbox, tmp_path / "checkpoint", world.spark)
    assert second.id == first.id
    assert second.runId != first.runId
    eventually(lambda: not is_active(first), "the first has ended")
    assert first.exception() is None
    assert second.isActive
    world.policy.order()
    inbox.put()
    second.processAllAvailable()
    assert [q.runId for q in world.spark.streams.active] == [second.runId]


@pytest.mark.parametrize("between_runs", [False, True], ids=["running", "between_runs"])
def test_a_name_that_is_taken_is_refused(
    world: World, inbox: Inbox, tmp_path: Path, between_runs: bool
) -> None:
    first = start_twice(world, inbox, tmp_path / "one", world.spark, name="taken")
    inbox.put()
    first.processAllAvailable()
    if between_runs:
        stop_between_runs(world, inbox, first)
    text = failure(lambda: start_twice(world, inbox, tmp_path / "two", world.spark, name="taken"))
    assert "Cannot start query with name taken" in text
    assert is_active(first)


def stop_between_runs(world: World, inbox: Inbox, query: StreamingQuery) -> None:
    """Have a query stopped for a restart and not started again."""
    before = len(world.policy.seen("QueryStopped", query.id))
    world.policy.order(every=1, pause=True)
    inbox.put()
    eventually(lambda: len(world.policy.seen("QueryStopped", query.id)) > before, "it is between two runs")


def test_a_batch_that_fails_fails_the_query_as_in_plain_spark(world: World, inbox: Inbox) -> None:
    before = world.temporary_checkpoints()

    def fail_later(batch: DataFrame, number: int) -> None:
        if number == 4:
            raise ValueError("the application's own mistake")
        batch.count()

    inbox.put(6)
    world.policy.order(every=1)
    query = stream(world.spark, inbox).writeStream.foreachBatch(fail_later).start()
    run = query.runId
    with pytest.raises(StreamingQueryException, match="the application's own mistake"):
        query.awaitTermination()
    assert world.policy.restarts(query.id) >= 2
    assert not is_active(query)
    error = query.exception()
    assert isinstance(error, StreamingQueryException)
    assert "the application's own mistake" in str(error)
    with pytest.raises(StreamingQueryException, match="the application's own mistake"):
        query.awaitTermination(1)
    with pytest.raises(StreamingQueryException):
        query.processAllAvailable()
    with pytest.raises(StreamingQueryException):
        world.spark.streams.awaitAnyTermination(1)
    world.spark.streams.resetTerminated()
    assert world.spark.streams.awaitAnyTermination(1) is False
    eventually(lambda: world.listener.of(query, "terminated"), "the listener heard of the end")
    assert world.listener.of(query, "terminated") == [(run, -1)]
    assert len(world.temporary_checkpoints() - before) == 1


def test_a_query_can_be_stopped_between_two_runs(world: World, inbox: Inbox) -> None:
    before = world.temporary_checkpoints()
    query = totals(world.spark, inbox).writeStream.format("noop").outputMode("update").start()
    inbox.put()
    query.processAllAvailable()
    stop_between_runs(world, inbox, query)
    assert is_active(query)
    assert query.awaitTermination(1) is False
    reported = [(p["batchId"], p["timestamp"]) for p in query.recentProgress]
    query.stop()
    assert [(p["batchId"], p["timestamp"]) for p in query.recentProgress] == reported
    assert len(set(reported)) == len(reported) > 0
    assert not is_active(query)
    assert query.awaitTermination(1) is True
    assert query.exception() is None
    assert world.spark.streams.active == []
    eventually(lambda: world.listener.of(query, "terminated"), "the listener heard of the end")
    assert len(world.listener.of(query, "terminated")) == 1
    assert world.temporary_checkpoints() == before


@pytest.mark.parametrize("stateful", [False, True], ids=["stateless", "stateful"])
def test_a_query_can_be_stopped_while_its_next_run_comes_up(
    world: World, inbox: Inbox, stateful: bool
) -> None:
    for _ in range(3):
        world.policy.order()
        rows = totals(world.spark, inbox) if stateful else stream(world.spark, inbox)
        query = rows.writeStream.format("noop").outputMode("update" if stateful else "append").start()
        inbox.put()
        query.processAllAvailable()
        stop_between_runs(world, inbox, query)
        started = len(world.policy.seen("StartQuery", query.id))
        world.policy.order()
        eventually(
            lambda q=query, n=started: len(world.policy.seen("StartQuery", q.id)) > n,  # type: ignore[misc]
            "it is ordered to start again",
            every_s=0.001,
        )
        query.stop()
        assert not is_active(query)
        assert query.awaitTermination(1) is True
        assert query.exception() is None
        assert world.spark.streams.active == []


@pytest.mark.parametrize("restarting", [False, True], ids=["running", "being_restarted"])
def test_the_death_of_the_stream_thread_is_noticed(world: World, inbox: Inbox, restarting: bool) -> None:
    inside, release = threading.Event(), threading.Event()
    query_id = ""

    def in_time_to_die(number: int) -> bool:
        if not restarting:
            return number == 1
        # The order to stop for a restart came within this batch, and waits for its end.
        stops, stopped = (world.policy.seen(what, query_id) for what in ("StopQuery", "QueryStopped"))
        return number > 0 and len(stops) > len(stopped)

    def die(_: DataFrame, number: int) -> None:
        deadline = time.monotonic() + 1
        while number > 0 and time.monotonic() < deadline:
            if in_time_to_die(number):
                inside.set()
                release.wait(PATIENCE_S)
                raise RuntimeError(FATAL_TEXT)
            time.sleep(0.02)

    deaths = world.driver.printed().count("StackOverflowError")
    query = stream(world.spark, inbox).writeStream.foreachBatch(die).start()
    query_id = query.id
    if restarting:
        world.policy.order(every=1)
    inbox.put(6)
    assert inside.wait(PATIENCE_S)
    run = query._jsq.streamingQuery()
    stopping = threading.Thread(target=query.stop, daemon=True)
    stopping.start()
    try:
        eventually(lambda: not run.isActive(), "the run is told to stop")
    finally:
        release.set()
    stopping.join(PATIENCE_S)
    assert not stopping.is_alive()
    # Without this the test would show nothing.
    assert world.driver.printed().count("StackOverflowError") > deaths
    assert query.awaitTermination(1) is True
    assert not is_active(query)
    assert world.spark.streams.active == []
    eventually(lambda: world.listener.of(query, "terminated"), "the listener heard of the end")
    assert len(world.listener.of(query, "terminated")) == 1


def test_what_a_query_reads_as_json_is_one_run_too(world: World, inbox: Inbox) -> None:
    world.policy.order(every=1)
    query = stream(world.spark, inbox).writeStream.format("noop").start()
    feed_until_restarted(world, inbox, query, 3)
    query.processAllAvailable()
    assert query.lastProgress is not None
    assert json.loads(query.lastProgress.json)["runId"] == query.runId
    query.stop()
    assert query.lastProgress is not None
    assert query.lastProgress["runId"] == query.runId
