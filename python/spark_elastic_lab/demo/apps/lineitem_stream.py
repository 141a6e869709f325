"""A plain streaming application: two queries over order lines as they arrive.

usage: lineitem_stream.py INCOMING ORDERS OUTPUT [INTERVAL [LOOKUP_MS]]
INCOMING is a folder of Parquet files, or a Kafka topic with lines of CSV: kafka:HOST:PORT/TOPIC
INTERVAL is the time between the starts of micro-batches (1 second). LOOKUP_MS is how long each line waits for
the answer of a simulated lookup service; by default there is no lookup.
The application ends once the file OUTPUT/_done exists and both queries have read all input before it.
"""

import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader

KAFKA = "kafka:"
SCHEMA = (
    "l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber int, l_quantity decimal(15,2),"
    " l_extendedprice decimal(15,2), l_discount decimal(15,2), l_tax decimal(15,2), l_returnflag string,"
    " l_linestatus string, l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct string,"
    " l_shipmode string, l_comment string"
)


def arrived(read: DataFrameReader | DataStreamReader, incoming: str) -> DataFrame:
    """Read the order lines in INCOMING, each with its time of `arrival`."""
    if not incoming.startswith(KAFKA):
        lines = read.schema(SCHEMA).parquet(incoming)
        return lines.withColumn("arrival", F.col("_metadata.file_modification_time"))
    servers, topic = incoming.removeprefix(KAFKA).split("/")
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    records = read.format("kafka").options(**options).load()
    line = F.from_csv(F.col("value").cast("string"), f"arrival_ms bigint, {SCHEMA}")
    lines = records.select(line.alias("line")).select("line.*")
    return lines.withColumn("arrival", F.timestamp_millis("arrival_ms")).drop("arrival_ms")


def enrich(lines: DataFrame, orders: DataFrame, lookup_ms: int = 0) -> DataFrame:
    """Add to each line its order's customer, date and priority, its revenue, and the answer of a lookup."""
    added = ["o_custkey", "o_orderdate", "o_orderpriority", "revenue"]
    # The lookup is simulated: it takes its time and returns nothing.
    answer = [f"reflect('java.lang.Thread', 'sleep', {lookup_ms}L) AS answer"] if lookup_ms else []
    known = orders.select(
        F.col("o_orderkey").alias("l_orderkey"), "o_custkey", "o_orderdate", "o_orderpriority"
    )
    return (
        lines.join(known.hint("shuffle_hash"), "l_orderkey", "left")
        .withColumn("revenue", F.col("l_extendedprice") * (1 - F.col("l_discount")))
        .selectExpr("l_orderkey", "l_linenumber", "arrival", *added, *answer)
    )


def totals(lines: DataFrame) -> DataFrame:
    """Count and sum the lines of each ship mode in five-second windows of arrival."""
    window = F.window("arrival", "5 seconds")
    return (
        lines.withWatermark("arrival", "5 seconds")
        .groupBy(window, "l_shipmode")
        .agg(
            F.count("*").alias("lines"),
            F.sum("l_quantity").alias("quantity"),
            F.sum("l_extendedprice").alias("price"),
        )
        .select("window.start", "window.end", "l_shipmode", "lines", "quantity", "price")
    )


def main(incoming: str, orders: str, output: str, interval: str = "1 second", lookup_ms: str = "0") -> None:
    """Run both queries until the input is marked as complete."""
    spark = SparkSession.builder.appName("lineitem-stream").getOrCreate()
    # In one write: Spark runs Python unbuffered, so log lines could come between several writes.
    print(f"UI: {spark.sparkContext.uiWebUrl}\n", end="", flush=True)
    lines = arrived(spark.readStream, incoming)
    queries = {
        "enrichment": enrich(lines, spark.read.parquet(orders), int(lookup_ms)),
        "totals": totals(lines),
    }
    running = [
        frame.writeStream.queryName(name)
        .format("parquet")
        .option("path", f"{output}/{name}")
        .option("checkpointLocation", f"{output}/checkpoints/{name}")
        .trigger(processingTime=interval)
        .start()
        for name, frame in queries.items()
    ]
    while not Path(output, "_done").exists():
        spark.streams.awaitAnyTermination(1)
        time.sleep(0.1)
    for query in running:
        query.processAllAvailable()
        query.stop()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
