"""A plain streaming application: one query over a steady source, with its progress in a file.

usage: stream_app.py stateless|stateful_small|stateful_large CHECKPOINT PROGRESS TRIGGER_MS STATE_KEYS
It runs until it is stopped. PROGRESS gets Spark's own report of each micro-batch, one JSON object a line.
"""

import sys
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

ROWS_PER_BATCH = 2000
# A key of the large state has about 1 KB of text, which does not compress.
_KEYS_PER_ROW_AT_FIRST = 25
KEYS_PER_BATCH_AT_FIRST = ROWS_PER_BATCH * _KEYS_PER_ROW_AT_FIRST


class ProgressNotes(StreamingQueryListener):
    """Appends each progress report to a file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Do nothing."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Append the report."""
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(event.progress.json.replace("\n", "") + "\n")

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Do nothing."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Do nothing."""


def stateless(rows: DataFrame) -> DataFrame:
    """Shuffle by key and compute something per row."""
    keyed = rows.withColumn("key", F.col("value") % 1000).repartition(F.col("key"))
    return keyed.withColumn("digest", F.sha2(F.col("value").cast("string"), 256))


def stateful_small(rows: DataFrame) -> DataFrame:
    """Count and sum seven groups in windows of five seconds, as the demonstration's query does."""
    return (
        rows.withWatermark("timestamp", "5 seconds")
        .groupBy(F.window("timestamp", "5 seconds"), (F.col("value") % 7).alias("group"))
        .agg(F.count("*").alias("rows"), F.sum("value").alias("total"), F.max("value").alias("latest"))
    )


def stateful_large(rows: DataFrame, keys: int) -> DataFrame:
    """Keep about 1 KB for each of `keys` keys: the first batches bring all keys, later ones touch some."""
    value = F.col("value")
    first = value * _KEYS_PER_ROW_AT_FIRST
    many = F.sequence(first, first + (_KEYS_PER_ROW_AT_FIRST - 1))
    one = F.array(F.pmod(F.xxhash64(value), F.lit(keys)))
    keyed = rows.select(F.explode(F.when(first < keys, many).otherwise(one)).alias("key"))
    pieces = [F.sha2(F.concat_ws("/", F.col("key"), F.lit(n)), 512) for n in range(8)]
    return keyed.groupBy("key").agg(F.count("*").alias("rows"), F.max(F.concat(*pieces)).alias("text"))


def main(kind: str, checkpoint: str, progress: str, trigger_ms: str, state_keys: str) -> None:
    """Run the query of this kind until the process is stopped."""
    spark = SparkSession.builder.appName(kind).getOrCreate()
    # In one write: Spark runs Python unbuffered, so log lines could come between several writes.
    print(f"UI: {spark.sparkContext.uiWebUrl}\n", end="", flush=True)
    spark.streams.addListener(ProgressNotes(progress))
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS_PER_BATCH)
    rows = source.option("numPartitions", 2).option("advanceMillisPerBatch", trigger_ms).load()
    queries: dict[str, Callable[[DataFrame], DataFrame]] = {
        "stateless": stateless,
        "stateful_small": stateful_small,
        "stateful_large": lambda rows: stateful_large(rows, int(state_keys)),
    }
    writer = queries[kind](rows).writeStream.queryName(kind).format("noop")
    writer = writer.outputMode("update" if kind == "stateful_large" else "append")
    writer = writer.option("checkpointLocation", checkpoint)
    writer.trigger(processingTime=f"{trigger_ms} milliseconds").start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
