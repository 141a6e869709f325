"""Tests of a move that is prepared while its query fails, stops, starts again, or goes on for long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from integration.streaming.driver import Driver
from integration.streaming.files import Inbox
from integration.streaming.prepared import Orders, copies, eventually, is_clean, known
from integration.streaming.world import Totals, World, own_world, totals

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

OFTEN = {
    "spark.sql.streaming.stateStore.maintenanceInterval": "50ms",
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "1",
}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


def start(world: World, inbox: Inbox, sink: Totals, checkpoint: Path) -> StreamingQuery:
    writer = totals(world.spark, inbox).writeStream.outputMode("update").foreachBatch(sink)
    return writer.option("checkpointLocation", str(checkpoint)).start()


def feed(query: StreamingQuery, inbox: Inbox, batches: int = 1) -> None:
    for _ in range(batches):
        inbox.put()
        query.processAllAvailable()


def snapshots(checkpoint: Path, partition: int) -> list[int]:
    """Return the versions of a partition that have a snapshot."""
    names = [path.name for path in (checkpoint / "state" / "0" / str(partition)).glob("*.zip")]
    return sorted(int(re.split("[_.]", name)[0]) for name in names)


@pytest.mark.parametrize("retained", [6, 12])
def test_a_prepared_move_outlives_no_snapshot_that_spark_deletes(
    jvm: Driver, inbox: Inbox, checkpoint: Path, tmp_path: Path, retained: int
) -> None:
    """Spark takes the snapshot of a prepared move for one of its own, which it deletes when it is old."""
    conf = {**OFTEN, "spark.sql.streaming.minBatchesToRetain": str(retained)}
    sink = Totals()
    with own_world(jvm, tmp_path, **conf) as world:
        query = start(world, inbox, sink, checkpoint)
        feed(query, inbox, 2)
        orders = Orders(world.policy, query.id)
        orders.prepare(3)
        (copied,) = known(checkpoint)
        oldest = max(snapshots(checkpoint, 0))

        def is_deleted() -> bool:
            feed(query, inbox)
            return all(version > oldest for version in snapshots(checkpoint, 0))

        eventually(is_deleted, "Spark has deleted what was there")
        outcome = orders.move(3)
        assert outcome["type"] == "ActionDone"
        feed(query, inbox, 2)
        assert sink.now == inbox.totals()
        query.stop()
        sink.now = {}
        again = start(world, inbox, sink, checkpoint)
        feed(again, inbox, 5)
        assert sink.now == inbox.totals()
        again.stop()
        assert not outcome["prepared"]
        assert is_clean(checkpoint, [copied])
