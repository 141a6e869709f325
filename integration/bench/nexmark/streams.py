"""A query of Nexmark as a stream, and the comparison of its output with a batch over the same events."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from integration.bench.nexmark.events import register
from integration.bench.nexmark.queries import QUERIES, Query
from spark_elastic_lab.advice.told import moment
from spark_elastic_lab.demo.compare import difference

# Days and hours of the events do not depend on the machine.
_ZONE = ("spark.sql.session.timeZone", "UTC")


def start(
    numbers: DataFrame,
    name: str,
    output: str,
    checkpoint: str,
    trigger: Mapping[str, Any],
    *,
    wait_us: int = 0,
) -> StreamingQuery:
    """Start a query over a stream of the events' numbers (column n), with parquet files as its output.

    An event takes `wait_us` µs longer, shared among the places where the query reads it.
    """
    query = QUERIES[name]
    spark = numbers.sparkSession
    spark.conf.set(*_ZONE)
    register(numbers, wait_us=wait_us // query.reads)
    result = spark.sql(query.text).writeStream.queryName(name).outputMode(query.mode)
    result = result.option("checkpointLocation", checkpoint).trigger(**trigger)
    if query.mode == "append":
        return result.format("parquet").option("path", output).start()

    def write(changed: DataFrame, batch: int) -> None:
        changed.write.mode("overwrite").parquet(f"{output}/batch={batch}")

    return result.foreachBatch(write).start()


def watermark_of(query: StreamingQuery) -> int | None:
    """Return the watermark (epoch ms) of a query's last report, None if it has none."""
    last = query.lastProgress
    said = last["eventTime"].get("watermark") if last else None
    return None if said is None else moment(said)


def compare(
    spark: SparkSession, name: str, events: int, output: Path, watermark: int | None
) -> dict[str, int]:
    """Compare what a stream has written with a batch over the first `events` events.

    Rows that the watermark (epoch ms) has not closed are not expected. Returns what `difference` returns.
    """
    query = QUERIES[name]
    expected = answer(spark, name, events)
    if query.closed is not None:
        # Kept first: Spark would choose by a session's end before it joins the events of a session.
        expected = expected.cache().where(F.col(query.closed) <= F.timestamp_millis(F.lit(watermark or 0)))
    found = spark.read.parquet(str(output))
    if query.mode == "update":
        found = _newest(found, query)
    try:
        return difference(found.select(*expected.columns), expected)
    finally:
        spark.catalog.clearCache()


def answer(spark: SparkSession, name: str, events: int) -> DataFrame:
    """Return the answer of a batch over the first `events` events, with all windows."""
    spark.conf.set(*_ZONE)
    register(spark.range(events).selectExpr("id AS n"))
    return spark.sql(QUERIES[name].text)


def exact(compared: Mapping[str, int]) -> bool:
    """Return whether a comparison found rows, and neither missing nor surplus ones."""
    return compared["rows_expected"] > 0 and compared["missing"] == compared["surplus"] == 0


def _newest(changes: DataFrame, query: Query) -> DataFrame:
    """Return the last row of each key; a row that one micro-batch wrote twice stays twice."""
    newest = Window.partitionBy(*query.keys).orderBy(F.desc("batch"))
    return changes.withColumn("place", F.rank().over(newest)).where("place = 1").drop("place", "batch")
