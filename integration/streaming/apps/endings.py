"""Start a streaming query, say so, and end in one of the ways that scripts end.

usage: endings.py WAY
"""

import sys
import threading
import time

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

(way,) = sys.argv[1:]
spark = SparkSession.builder.appName("endings").getOrCreate()


def start() -> StreamingQuery:
    rows = spark.readStream.format("rate").load()
    return rows.writeStream.format("noop").start()


def say_once_asleep(thread: int) -> None:
    """Say it once `thread` reads the JVM's answer.

    A Ctrl-C that comes between a call and that read hangs PySpark, with or without the plugin: its handler
    sends a call of its own over the same connection, which the JVM reads after the first one's end.
    """
    while sys._current_frames()[thread].f_code.co_name != "readinto":
        time.sleep(0.01)
    print("about to end", flush=True)


if way != "at_once":
    query = start()
    if way not in ("query_left", "awaited"):
        query.stop()
if way == "second_context":
    spark.stop()
    spark = SparkSession.builder.appName("endings").getOrCreate()
    start().stop()
if way == "awaited":
    threading.Thread(target=say_once_asleep, args=[threading.get_ident()], daemon=True).start()
    query.awaitTermination()
print("about to end", flush=True)

if way == "exit":
    sys.exit(3)
elif way == "exception":
    raise ValueError("meant to fail")
elif way == "two_stops":
    spark.stop()
    spark.stop()
