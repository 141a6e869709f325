"""Tests that an application sees its queries as in plain Spark while they are rescaled.

The policy is a stand-in that rescales queries at known moments: see scripted_policy.py.
"""

from __future__ import annotations

import json
import re
import threading
import time
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from integration.streaming.files import Inbox
from integration.streaming.waiting import PATIENCE_S, eventually
from integration.streaming.world import World, feed_until_rescaled, is_active, stream, totals

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

# With this text, Spark's stream thread overflows its stack when it checks whether an error is an interrupt.
FATAL_TEXT = "py4j.protocol.Py4JJavaError: An error occurred while calling o1.count. " + "x\n" * 100_000


def collected(table: DataFrame) -> dict[int, tuple[int, int]]:
    return {row.key: (row.n, row.total) for row in table.collect()}


def test_three_rescales_happen_within_one_run(world: World, inbox: Inbox) -> None:
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
    feed_until_rescaled(world, inbox, query, 3)

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
    feed_until_rescaled(world, inbox, query, 3)
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


def test_a_query_of_a_cloned_session_is_rescaled_too(world: World, inbox: Inbox) -> None:
    world.policy.order(every=1)
    clone = SparkSession(world.spark.sparkContext, world.spark._jsparkSession.cloneSession())
    query = totals(clone, inbox).writeStream.format("noop").outputMode("update").start()
    feed_until_rescaled(world, inbox, query, 1)
    assert is_active(query)
    query.stop()
    assert not is_active(query)


@pytest.mark.parametrize("stateful", [False, True], ids=["stateless", "stateful"])
@pytest.mark.parametrize(
    ("interval", "batch_s", "files"),
    [("0 seconds", 1.0, 6), ("100 milliseconds", 0.05, 16)],
    ids=["long_batches", "short_sleeps_between"],
)
def test_no_batch_is_interrupted_or_repeated(
    world: World, inbox: Inbox, interval: str, batch_s: float, files: int, stateful: bool
) -> None:
    begun: list[int] = []
    ended: list[int] = []
    values: list[int] = []

    def slowly(batch: DataFrame, number: int) -> None:
        begun.append(number)
        values.extend(row.value for row in batch.collect())
        time.sleep(batch_s)
        ended.append(number)

    world.policy.order(every=1)
    inbox.put(files)
    rows = stream(world.spark, inbox)
    if stateful:
        rows = rows.dropDuplicates(["value"])
    query = rows.writeStream.foreachBatch(slowly).trigger(processingTime=interval).start()
    query.processAllAvailable()
    feed_until_rescaled(world, inbox, query, 3)
    query.stop()
    assert begun == ended == sorted(set(begun))
    assert len(begun) == inbox.files
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
    feed_until_rescaled(world, inbox, query, 2)
    query.processAllAvailable()
    assert is_active(query)
    query.explain()
    query.stop()
    assert query.exception() is None
    batches = re.findall(r"^Batch: (\d+)$", world.driver.printed()[before:], re.MULTILINE)
    assert batches == [str(number) for number in range(len(batches))]
    assert len(batches) * 10 == inbox.rows


def test_a_batch_that_fails_fails_the_query_as_in_plain_spark(world: World, inbox: Inbox) -> None:
    before = world.temporary_checkpoints()

    fails = threading.Event()

    def fail_later(batch: DataFrame, number: int) -> None:
        if fails.is_set():
            raise ValueError("the application's own mistake")
        batch.count()

    world.policy.order(every=1)
    query = stream(world.spark, inbox).writeStream.foreachBatch(fail_later).start()
    run = query.runId
    feed_until_rescaled(world, inbox, query, 2)
    fails.set()
    inbox.put()
    with pytest.raises(StreamingQueryException, match="the application's own mistake"):
        query.awaitTermination()
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


def test_a_query_can_be_stopped_while_it_waits_for_its_first_batch(world: World, inbox: Inbox) -> None:
    before = world.temporary_checkpoints()
    world.policy.order(hold=True)
    query = totals(world.spark, inbox).writeStream.format("noop").outputMode("update").start()
    eventually(lambda: query.status["message"] == "Is told to wait.", "it says what it waits for")
    assert is_active(query)
    assert query.awaitTermination(1) is False
    assert query.recentProgress == []
    query.stop()
    assert not is_active(query)
    assert query.awaitTermination(1) is True
    assert query.exception() is None
    assert world.spark.streams.active == []
    eventually(lambda: world.listener.of(query, "terminated"), "the listener heard of the end")
    assert len(world.listener.of(query, "terminated")) == 1
    eventually(lambda: world.temporary_checkpoints() == before, "its checkpoint is deleted")


@pytest.mark.parametrize("stateful", [False, True], ids=["stateless", "stateful"])
def test_a_query_that_waits_for_its_first_batch_begins_with_the_count_of_its_start(
    world: World, inbox: Inbox, stateful: bool
) -> None:
    key = "spark.sql.shuffle.partitions"
    world.spark.conf.set(key, "7")
    counts: list[str | None] = []

    def look(batch: DataFrame, number: int) -> None:
        batch.count()
        counts.append(batch.sparkSession.conf.get(key))

    try:
        world.policy.order(hold=True)
        rows = totals(world.spark, inbox) if stateful else stream(world.spark, inbox).repartition("key")
        writer = rows.writeStream.foreachBatch(look).outputMode("update" if stateful else "append")
        query = writer.start()
        inbox.put()
        world.policy.order()
        query.processAllAvailable()
    finally:
        world.spark.conf.unset(key)
    assert counts == ["2"]
    if stateful:
        assert query.lastProgress is not None
        (operator,) = query.lastProgress["stateOperators"]
        assert operator["numShufflePartitions"] == 2
        world.policy.order(every=1)
        # possible only with the store and format of a rescalable query
        feed_until_rescaled(world, inbox, query, 1)
    query.stop()


@pytest.mark.parametrize("stateful", [False, True], ids=["stateless", "stateful"])
def test_a_query_can_be_stopped_while_it_is_rescaled(world: World, inbox: Inbox, stateful: bool) -> None:
    for _ in range(3):
        world.policy.order()
        rows = totals(world.spark, inbox) if stateful else stream(world.spark, inbox)
        query = rows.writeStream.format("noop").outputMode("update" if stateful else "append").start()
        inbox.put()
        query.processAllAvailable()
        world.policy.order(now=1)
        eventually(
            lambda q=query: world.policy.sent("Rescale", q.id),  # type: ignore[misc]
            "the shim has the order",
            every_s=0.001,
        )
        query.stop()
        assert not is_active(query)
        assert query.awaitTermination(1) is True
        assert query.exception() is None
        assert world.spark.streams.active == []


def test_between_two_moves_of_state_a_batch_is_committed(world: World, inbox: Inbox) -> None:
    query = totals(world.spark, inbox).writeStream.format("noop").outputMode("update").start()
    inbox.put()
    query.processAllAvailable()
    world.policy.order(now=1)
    eventually(lambda: world.policy.rescales(query.id) == 1, "the first move")
    world.policy.order(now=2)
    eventually(lambda: world.policy.sent("Rescale", query.id) == 2, "the shim has the second order")
    seen = len(world.policy.seen("QueryProgress", query.id))
    inbox.put()
    query.processAllAvailable()
    eventually(lambda: world.policy.rescales(query.id) == 2, "the second move")

    def counts() -> list[int]:
        return [batch["partitions"] for batch in world.policy.seen("QueryProgress", query.id)][seen:]

    # Its event arrives by another path than that of the move.
    assert eventually(counts, "the batch between is told of") == [3]
    query.stop()


def test_what_keeps_state_without_keys_is_said(world: World, inbox: Inbox) -> None:
    keyed, every = totals(world.spark, inbox), stream(world.spark, inbox)
    queries = {
        "by_key": (keyed, "complete"),
        "largest": (keyed.orderBy("total").limit(3), "complete"),
        "all_rows": (every.groupBy().count(), "complete"),
        "first_rows": (every.limit(3), "append"),
    }
    for name, (rows, mode) in queries.items():
        rows.writeStream.format("noop").queryName(name).outputMode(mode).start().stop()
    told = [event["facts"] for event in world.policy.all("QuerySubmitted")]
    found = {facts["name"]: facts["global_state"] for facts in told if facts["name"] in queries}
    assert found == {"by_key": False, "largest": False, "all_rows": True, "first_rows": True}


def test_after_a_failed_first_batch_state_can_still_be_moved(
    world: World, inbox: Inbox, tmp_path: Path
) -> None:
    def fail(_batch: DataFrame, _number: int) -> None:
        raise RuntimeError("the sink is not there yet")

    writer = totals(world.spark, inbox).writeStream.outputMode("update")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    inbox.put()
    failed = writer.foreachBatch(fail).start()
    with pytest.raises(StreamingQueryException, match="not there yet"):
        failed.awaitTermination()
    query = writer.format("noop").start()
    query.processAllAvailable()
    world.policy.order(now=1)
    eventually(lambda: world.policy.rescales(query.id) == 1, "its state is moved")
    inbox.put()
    query.processAllAvailable()
    assert query.lastProgress is not None
    assert query.lastProgress["stateOperators"][0]["numShufflePartitions"] == 3
    query.stop()


def test_the_death_of_the_stream_thread_is_noticed(world: World, inbox: Inbox) -> None:
    inside, release = threading.Event(), threading.Event()

    def die(_: DataFrame, number: int) -> None:
        if number == 1:
            inside.set()
            release.wait(PATIENCE_S)
            raise RuntimeError(FATAL_TEXT)

    deaths = world.driver.printed().count("StackOverflowError")
    query = stream(world.spark, inbox).writeStream.foreachBatch(die).start()
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
    # This shows that the overflow really happened.
    eventually(lambda: world.driver.printed().count("StackOverflowError") > deaths, "its end is printed")
    assert query.awaitTermination(1) is True
    assert not is_active(query)
    assert world.spark.streams.active == []
    eventually(lambda: world.policy.seen("QueryTerminated", query.id), "the policy heard of the end")


def test_what_a_query_reads_as_json_is_one_run_too(world: World, inbox: Inbox) -> None:
    world.policy.order(every=1)
    query = stream(world.spark, inbox).writeStream.format("noop").start()
    feed_until_rescaled(world, inbox, query, 3)
    query.processAllAvailable()
    assert query.lastProgress is not None
    assert json.loads(query.lastProgress.json)["runId"] == query.runId
    query.stop()
    assert query.lastProgress is not None
    assert query.lastProgress["runId"] == query.runId
