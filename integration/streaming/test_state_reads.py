"""Tests that Spark's reader of state reads checkpoints of the plugin and others without any setting."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from integration.spark_minor import MOVES_STATE
from integration.streaming.driver import PLUGIN, Driver
from integration.streaming.files import Inbox
from integration.streaming.world import Totals, stream, totals

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not MOVES_STATE, reason="a store is chosen from Spark 4.2 on"),
]


def summed(spark: SparkSession, inbox: Inbox, checkpoint: Path, sink: Totals) -> StreamingQuery:
    """Run a query that has read two files, one after the other, and keeps running."""
    writer = totals(spark, inbox).writeStream.outputMode("update").foreachBatch(sink)
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    for _ in range(2):
        inbox.put()
        query.processAllAvailable()
    return query


def state(spark: SparkSession, checkpoint: Path, **options: bool | int | str) -> DataFrame:
    """Return the state that Spark's reader finds in a checkpoint."""
    return spark.read.format("statestore").options(**options).load(str(checkpoint))


def kept(found: DataFrame) -> dict[int, tuple[int, int]]:
    """Return the count and the sum of each key."""
    return {row[0]: (row[1], row[2]) for row in found.select("key.*", "value.*").collect()}


@pytest.mark.parametrize("store", ["rescalable", "unchanged"])
def test_the_state_of_a_query_is_read_while_it_runs_and_afterwards(
    jvm: Driver, inbox: Inbox, tmp_path: Path, store: str
) -> None:
    checkpoint, sink = tmp_path / "checkpoint", Totals()
    conf = {"spark.elastic.stateStore": store, "spark.sql.shuffle.partitions": "2"}
    with jvm.session({**PLUGIN, **conf}) as spark:
        query = summed(spark, inbox, checkpoint, sink)
        assert ("RocksDB" in (checkpoint / "offsets" / "0").read_text()) == (store == "rescalable")
        # As in Spark's own store, a commit writes one file for each partition.
        names = [path.name for path in (checkpoint / "state" / "0" / "0").glob("2*")]
        assert len(names) == 1, names
        first = {key: (n, total) for key, (n, total) in kept(state(spark, checkpoint, batchId=0)).items()}
        assert sum(n for n, _ in first.values()) == 10
        assert kept(state(spark, checkpoint)) == sink.now == inbox.totals()
        query.stop()
        assert kept(state(spark, checkpoint)) == inbox.totals()
        changed = state(spark, checkpoint, readChangeFeed=True, changeStartBatchId=1, changeEndBatchId=1)
        assert {row.key.key for row in changed.collect()} == {
            key for key, was in sink.now.items() if first.get(key) != was
        }
        spark.sql(f"CREATE TEMPORARY VIEW kept USING statestore OPTIONS (path '{checkpoint}')")
        assert spark.table("kept").count() == len(inbox.totals())


def test_the_state_of_a_join_is_read(jvm: Driver, inbox: Inbox, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    with jvm.session({**PLUGIN, "spark.sql.shuffle.partitions": "2"}) as spark:
        other = stream(spark, inbox).select(F.col("key").alias("other"), F.col("value").alias("o"))
        joined = stream(spark, inbox).join(other, F.expr("key = other AND value = o"))
        writer = joined.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
        inbox.put()
        query = writer.start()
        query.processAllAvailable()
        for side in ("left", "right"):
            assert state(spark, checkpoint, joinSide=side).count() == 10
        query.stop()
