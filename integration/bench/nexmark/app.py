"""Runs one of Nexmark's queries over numbers of events that arrive as lines of files.

usage: app.py QUERY LINES OUTPUT CHECKPOINT PROGRESS TRIGGER_MS WAIT_US SOCKET

PROGRESS gets Spark's own report of each micro-batch, one JSON object a line. When all lines are there, the
order "finish" over SOCKET lets the query read them to the end. The answer is the last watermark, None if the
query has none. Then the application ends.
"""

import sys
from multiprocessing.connection import Listener

from pyspark.sql import SparkSession

from integration.bench.nexmark.streams import start, watermark_of
from integration.bench.stream_app import ProgressNotes


def main(
    name: str,
    lines: str,
    output: str,
    checkpoint: str,
    progress: str,
    trigger_ms: str,
    wait_us: str,
    socket: str,
) -> None:
    """Run the query until it is told to finish."""
    spark = SparkSession.builder.appName(name).getOrCreate()
    spark.streams.addListener(ProgressNotes(progress))
    numbers = spark.readStream.text(lines).selectExpr("CAST(value AS BIGINT) AS n")
    trigger = {"processingTime": f"{trigger_ms} milliseconds"}
    query = start(numbers, name, output, checkpoint, trigger, wait_us=int(wait_us))
    with Listener(socket, family="AF_UNIX") as listener, listener.accept() as orders:
        orders.recv()
        query.processAllAvailable()
        orders.send(watermark_of(query))
        query.stop()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
