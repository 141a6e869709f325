"""Tests of what can collide with a rescale in a run: store maintenance, ending triggers, manual clocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from integration.streaming.driver import Driver
from integration.streaming.files import Inbox
from integration.streaming.state_store import FORMAT_1
from integration.streaming.waiting import PATIENCE_S, eventually
from integration.streaming.world import (
    Totals,
    World,
    feed_until_rescaled,
    own_world,
    state_partitions,
    totals,
)

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

RESCALES = 8
CHANGELOG = {"spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true"}


@pytest.mark.parametrize(
    "more", [{}, pytest.param(CHANGELOG, marks=pytest.mark.slow)], ids=["snapshots", "changelog"]
)
def test_maintenance_never_meets_a_store_that_is_moved(
    jvm: Driver, inbox: Inbox, tmp_path: Path, more: dict[str, str]
) -> None:
    """Maintenance unloads stores that the coordinator does not know, and a move makes it forget all of them.

    A task that fails ends the query here, since local[2] does not retry tasks.
    """
    often = {
        "spark.sql.streaming.stateStore.maintenanceInterval": "10ms",
        "spark.sql.streaming.stateStore.minDeltasForSnapshot": "2",
        "spark.sql.streaming.minBatchesToRetain": "2",
        **more,
    }
    sink = Totals()
    with own_world(jvm, tmp_path, **often) as world:
        world.policy.order(every=1, counts=(3, 4, 2, 1, 2))
        inbox.put()
        writer = totals(world.spark, inbox).writeStream.outputMode("update").foreachBatch(sink)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        feed_until_rescaled(world, inbox, query, RESCALES)
        query.processAllAvailable()
        assert query.exception() is None
        query.stop()
    assert sink.now == inbox.totals()
    assert sink.batches == sorted(set(sink.batches))


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param(FORMAT_1, marks=pytest.mark.slow),
        {**FORMAT_1, **CHANGELOG},
    ],
    ids=["format 2", "format 1", "format 1 with changelog"],
)
def test_state_is_right_after_a_move_that_was_taken_back(
    jvm: Driver, inbox: Inbox, tmp_path: Path, more: dict[str, str]
) -> None:
    """The micro-batch after it has the number of the move, and with it the names of its files of format 1."""
    sink = Totals()
    checkpoint = tmp_path / "checkpoint"
    obstacle = checkpoint / "state" / "0" / "4"

    def start(world: World) -> StreamingQuery:
        writer = totals(world.spark, inbox).writeStream.outputMode("update").foreachBatch(sink)
        return writer.option("checkpointLocation", str(checkpoint)).start()

    def run(query: StreamingQuery) -> None:
        inbox.put()
        query.processAllAvailable()
        assert sink.now == inbox.totals()

    with own_world(jvm, tmp_path, **more) as world:
        query = start(world)
        run(query)
        run(query)
        obstacle.write_text("")
        world.policy.order(now=1, counts=(5,))
        eventually(lambda: world.policy.all("ActionFailed"), "the move fails")
        run(query)
        run(query)
        assert world.policy.rescales(query.id) == 0
        query.stop()
        # Another run has the state from its files alone.
        query = start(world)
        run(query)
        obstacle.unlink()
        world.policy.order(now=2, counts=(5,))
        eventually(lambda: world.policy.rescales(query.id) == 1, "the move is carried out")
        run(query)
        assert state_partitions(query) == 5
        query.stop()
    names = {file.name for file in (checkpoint / "state" / "0").glob("*/*.zip")}
    assert all(("_" in name) == (not more) for name in names), names


@pytest.mark.parametrize(
    "stop_first", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["at_once", "in_two_runs"]
)
def test_a_stateful_query_that_takes_what_is_available_is_moved_between_its_batches(
    world: World, inbox: Inbox, tmp_path: Path, stop_first: bool
) -> None:
    sink = Totals()
    checkpoint = str(tmp_path / "checkpoint")

    def orders() -> int:
        return sum(order["kind"] == "Rescale" for order in world.policy.all("Sent"))

    def run(files: int) -> StreamingQuery:
        inbox.put(files)
        ordered, first = orders(), len(sink.batches)

        def write(batch: DataFrame, number: int) -> None:
            sink(batch, number)
            # Wait for the order after the previous micro-batch, for which a busy policy might be too late.
            behind = len(sink.batches) - first - 1
            eventually(lambda: orders() >= ordered + behind, "an order after each batch before")

        writer = totals(world.spark, inbox).writeStream.outputMode("update").foreachBatch(write)
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        assert query.awaitTermination(int(PATIENCE_S)) is True
        assert query.exception() is None
        assert sink.now == inbox.totals()
        return query

    world.policy.order(every=1)
    if stop_first:
        run(3)
    query = run(8)
    # The report of the first micro-batch comes while the second one runs; that of the last one is too late.
    eventually(lambda: world.policy.rescales(query.id) >= 2, "it was moved more than once")
    # An order after a late report replaces another one, or comes after the end of the run.
    failed = {event["error"] for event in world.policy.all("ActionFailed")}
    late = ("another one was ordered after it", "there is no run ")
    assert all(error.startswith(late) for error in failed), failed
    # One micro-batch per file, and none twice; a move also uses up a number.
    assert len(sink.batches) == len(set(sink.batches)) == (11 if stop_first else 8)


def start_with(world: World, clock: Any, frame: DataFrame, checkpoint: Path) -> Any:
    """Start a query into a table in memory, with a trigger every second of this clock."""
    jvm: Any = world.driver.jvm
    sql = jvm.org.apache.spark.sql
    none = jvm.scala.Option.empty()
    sink = sql.execution.streaming.sources.MemorySink()
    trigger = sql.streaming.Trigger.ProcessingTime("1 second")
    update = sql.streaming.OutputMode.Update()
    to = jvm.scala.Option.apply(str(checkpoint))
    options = jvm.scala.Predef.Map().empty()
    streams = world.spark._jsparkSession.streams()
    started = streams.startQuery(
        none, none, to, frame._jdf, options, sink, update, False, True, trigger, clock, none, none
    )
    return started, sink


def test_with_a_clock_of_its_own_a_query_is_moved_at_its_next_trigger(
    world: World, inbox: Inbox, tmp_path: Path
) -> None:
    jvm: Any = world.driver.jvm
    clock = jvm.org.apache.spark.util.ManualClock(1_000_000)
    inbox.put()
    started, sink = start_with(world, clock, totals(world.spark, inbox), tmp_path / "checkpoint")
    query = StreamingQuery(started)

    def batches() -> int:
        latest = sink.latestBatchId()
        return int(latest.get()) + 1 if latest.isDefined() else 0

    try:
        eventually(lambda: batches() == 1, "the batch of the first trigger")
        eventually(lambda: world.policy.seen("QueryProgress", query.id), "the policy hears of it")
        world.policy.order(now=1, counts=(3,))
        eventually(lambda: world.policy.sent("Rescale", query.id), "the order is there")
        inbox.put()
        # The clock stands still, and so does the query.
        assert (batches(), world.policy.rescales(query.id)) == (1, 0)
        clock.advance(1_000)
        eventually(lambda: world.policy.rescales(query.id) == 1, "it is moved at its next trigger")
        clock.advance(1_000)
        eventually(lambda: query.lastProgress is not None and query.lastProgress["batchId"] > 0, "a batch")
        assert query.exception() is None
        (found,) = [p for p in query.recentProgress if p["numInputRows"]][1:]
        assert found["stateOperators"][0]["numShufflePartitions"] == 3
    finally:
        query.stop()
