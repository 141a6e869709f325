"""A query that sums up the rows of an inbox, in one run after another from the same checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from integration.streaming.files import SCHEMA, Inbox


class Totals:
    """Keeps the newest totals of each key in `now`, and the numbers of its micro-batches."""

    def __init__(self, inbox: Inbox, checkpoint: Path) -> None:
        self.inbox = inbox
        self.checkpoint = checkpoint
        self.now: dict[int, tuple[int, int]] = {}
        self.batches: list[int] = []

    def keep(self, batch: DataFrame, number: int) -> None:
        self.now = {row.key: (row.n, row.total) for row in batch.collect()}
        self.batches.append(number)

    def start(
        self, spark: SparkSession, write: Callable[[DataFrame, int], None], checkpoint: str = ""
    ) -> StreamingQuery:
        """Start it; `checkpoint` is the name of its checkpoint where that is no path of this machine."""
        rows = spark.readStream.schema(SCHEMA).json(str(self.inbox.folder))
        totals = rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("total"))
        writer = totals.writeStream.outputMode("complete").foreachBatch(write)
        return writer.option("checkpointLocation", checkpoint or str(self.checkpoint)).start()

    def run(self, spark: SparkSession) -> dict[str, Any]:
        """Run until all input has been read; return the progress of the last micro-batch's state."""
        query = self.start(spark, self.keep)
        try:
            query.processAllAvailable()
            progress = query.lastProgress
        finally:
            query.stop()
        assert progress is not None
        state: dict[str, Any] = progress["stateOperators"][0]
        return state

    def count(self, spark: SparkSession) -> int:
        """Run, and return the number of partitions of the last micro-batch's state."""
        return int(self.run(spark)["numShufflePartitions"])
