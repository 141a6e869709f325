"""Start a streaming query, print that, and end in one of the ways in which scripts end.

usage: endings.py WAY
"""

import sys
import threading
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from integration.streaming.asleep import once_asleep

(way,) = sys.argv[1:]
spark = SparkSession.builder.appName("endings").getOrCreate()


def start() -> StreamingQuery:
    rows = spark.readStream.format("rate").load()
    return rows.writeStream.format("noop").start()


if way != "at_once":
    query = start()
    if way not in ("query_left", "awaited"):
        query.stop()
if way == "second_context":
    spark.stop()
    spark = SparkSession.builder.appName("endings").getOrCreate()
    start().stop()
if way == "awaited":
    say = partial(print, "about to end", flush=True)
    threading.Thread(target=once_asleep, args=[threading.get_ident(), say], daemon=True).start()
    query.awaitTermination()
print("about to end", flush=True)

if way == "exit":
    sys.exit(3)
elif way == "exception":
    raise ValueError("meant to fail")
elif way == "two_stops":
    spark.stop()
    spark.stop()
