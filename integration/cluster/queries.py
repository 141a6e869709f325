"""Streaming queries as an application would write them, and batch queries over the same input."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import frozen
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from spark_elastic_lab.demo.apps.lineitem_stream import arrived, enrich, totals
from spark_elastic_lab.demo.compare import closed, difference

TRIGGER = "500 milliseconds"
# After a stall, a topic is read in pieces, so that a query is behind for a while.
OFFSETS_PER_TRIGGER = 4000
# Without a schema, reading starts a job to infer it, which waits where there are no executors.
ORDERS = "o_orderkey bigint, o_custkey bigint, o_orderdate date, o_orderpriority string"


@frozen(kw_only=True)
class Places:
    """The folders that the queries read and write; `incoming` is the demonstration's name for its input."""

    incoming: str
    orders: Path
    output: Path


Start = Callable[[SparkSession, Places, str], StreamingQuery]


def lines(spark: SparkSession, places: Places) -> DataFrame:
    """Read the order lines as they arrive."""
    return arrived(spark.readStream.option("maxOffsetsPerTrigger", OFFSETS_PER_TRIGGER), places.incoming)


def orders(spark: SparkSession, places: Places) -> DataFrame:
    """Read the orders, which do not change."""
    return spark.read.schema(ORDERS).parquet(str(places.orders))


def suppliers(lines: DataFrame) -> DataFrame:
    """Count and sum the lines of each supplier."""
    return lines.groupBy("l_suppkey").agg(F.count("*").alias("lines"), F.sum("l_quantity").alias("quantity"))


def start_enrichment(spark: SparkSession, places: Places, name: str) -> StreamingQuery:
    """Start a stateless query with a shuffle, into Parquet."""
    return _to_parquet(enrich(lines(spark, places), orders(spark, places)), places, name)


def start_totals(spark: SparkSession, places: Places, name: str) -> StreamingQuery:
    """Start a stateful query that appends each window once it is closed, into Parquet."""
    return _to_parquet(totals(lines(spark, places)), places, name)


def start_suppliers(spark: SparkSession, places: Places, name: str) -> StreamingQuery:
    """Start a stateful query that passes the changes of each micro-batch to a function."""

    def write(changed: DataFrame, batch: int) -> None:
        changed.write.mode("overwrite").parquet(str(places.output / name / f"batch={batch}"))

    changes = suppliers(lines(spark, places)).writeStream.foreachBatch(write)
    return (
        changes.queryName(name)
        .outputMode("update")
        .option("checkpointLocation", _checkpoint(places, name))
        .trigger(processingTime=TRIGGER)
        .start()
    )


def compare(spark: SparkSession, places: Places, wanted: Mapping[str, Start]) -> dict[str, dict[str, int]]:
    """Compare the output of each query with a batch query; `wanted` gives the start function of each."""
    batch = spark.newSession()
    batch.conf.set("spark.sql.shuffle.partitions", "2")
    rows = arrived(batch.read, places.incoming).cache()
    expected: dict[Start, Callable[[], DataFrame]] = {
        start_enrichment: lambda: enrich(rows, orders(batch, places)),
        start_totals: lambda: closed(totals(rows), rows),
        start_suppliers: lambda: suppliers(rows),
    }
    result = {}
    for name, start in wanted.items():
        found = batch.read.parquet(str(places.output / name))
        if start is start_suppliers:
            found = _last_of_each_supplier(found)
        result[name] = difference(found, expected[start]())
    rows.unpersist()
    return result


def _last_of_each_supplier(changes: DataFrame) -> DataFrame:
    newest = Window.partitionBy("l_suppkey").orderBy(F.desc("batch"))
    # By rank, so that a row written twice in one micro-batch is counted twice.
    ranked = changes.withColumn("rank", F.rank().over(newest))
    return ranked.where("rank = 1").drop("rank", "batch")


def _to_parquet(frame: DataFrame, places: Places, name: str) -> StreamingQuery:
    return (
        frame.writeStream.queryName(name)
        .format("parquet")
        .option("path", str(places.output / name))
        .option("checkpointLocation", _checkpoint(places, name))
        .trigger(processingTime=TRIGGER)
        .start()
    )


def _checkpoint(places: Places, name: str) -> str:
    return str(places.output / "checkpoints" / name)
