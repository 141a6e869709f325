"""Tests that a failure of the store that we chose happens once: the next start uses the user's store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.ml.clustering import KMeans
from pyspark.ml.feature import VectorAssembler
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from integration.spark_minor import MOVES_STATE
from integration.streaming.driver import PLUGIN, Driver
from integration.streaming.files import Inbox
from integration.streaming.world import state_partitions, totals

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not MOVES_STATE, reason="a store is chosen from Spark 4.2 on"),
]

# A task that waits for a store that it has open itself waits for the whole timeout.
IN_VAIN = {"spark.sql.streaming.stateStore.rocksdb.lockAcquireTimeoutMs": "2000"}


def cluster(batch: DataFrame, _: int) -> None:
    """Read the rows twice in one task, as this algorithm does with uncached data."""
    columns = VectorAssembler(inputCols=["n", "total"], outputCol="features")
    KMeans(k=2, maxIter=1, seed=1).fit(columns.transform(batch))


def look(batch: DataFrame, _: int) -> None:
    """Read some of the rows."""
    batch.limit(1).collect()


def started(
    spark: SparkSession, inbox: Inbox, sink: Callable[[DataFrame, int], None], checkpoint: Path
) -> StreamingQuery:
    writer = totals(spark, inbox).writeStream.outputMode("update").foreachBatch(sink)
    return writer.option("checkpointLocation", str(checkpoint)).start()


@pytest.mark.parametrize(
    ("sink", "count", "error"),
    [(cluster, 2, "UNRELEASED_THREAD_ERROR"), (look, 1, "CheckpointInfo length")],
)
def test_it_fails_once_with_what_helps_and_then_has_the_users_store_and_count(
    jvm: Driver,
    inbox: Inbox,
    tmp_path: Path,
    sink: Callable[[DataFrame, int], None],
    count: int,
    error: str,
) -> None:
    checkpoint, since = tmp_path / "checkpoint", len(jvm.said())
    with jvm.session({**PLUGIN, **IN_VAIN, "spark.sql.shuffle.partitions": str(count)}) as spark:
        inbox.put()
        with pytest.raises(StreamingQueryException, match=error):
            started(spark, inbox, sink, checkpoint).processAllAvailable()
        assert "RocksDB" in (checkpoint / "offsets" / "0").read_text()
        query = started(spark, inbox, sink, checkpoint)
        for _ in range(2):
            inbox.put()
            query.processAllAvailable()
        assert state_partitions(query) == count
        query.stop()
    assert "RocksDB" not in (checkpoint / "offsets" / "0").read_text()
    assert [line for line in jvm.said()[since:] if "uses Spark's own store" in line]
