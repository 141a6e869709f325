"""Runs queries of TPC-H or TPC-DS on request, one after another, and answers with their start and end times.

usage: batch_app.py TABLES QUERIES SOCKET

TABLES is a folder of parquet files, QUERIES a JSON file of SQL by name. SOCKET is where the application
listens for orders: a query with a number of initial shuffle partitions, or with None to leave it unset. The
order "cost" asks for the cost of all stages so far, and a path names another folder of tables. The order None
ends the application.
"""

import json
import sys
import time
from multiprocessing.connection import Listener
from pathlib import Path

from pyspark.sql import SparkSession

tables, queries, socket = sys.argv[1:]
spark = SparkSession.builder.appName("batch").getOrCreate()
texts = json.loads(Path(queries).read_text(encoding="utf-8"))


def read(folder: Path) -> None:
    for table in folder.glob("*.parquet"):
        spark.read.parquet(str(table)).createOrReplaceTempView(table.stem)


def cost() -> dict[str, int]:
    store = spark.sparkContext._jsc.sc().statusStore()
    # Py4J has no default values: no details, no quantiles, tasks of any status.
    quantiles, tasks = (getattr(store, f"stageList$default${place}")() for place in (4, 5))
    stages = store.stageList(None, False, False, quantiles, tasks)
    total = dict.fromkeys(("cpu_ns", "slots_ms", "shuffle_written_bytes", "spilled_bytes", "tasks"), 0)
    for number in range(stages.size()):
        stage = stages.apply(number)
        total["cpu_ns"] += stage.executorCpuTime()
        total["slots_ms"] += stage.executorRunTime()
        total["shuffle_written_bytes"] += stage.shuffleWriteBytes()
        total["spilled_bytes"] += stage.diskBytesSpilled()
        total["tasks"] += stage.numCompleteTasks()
    return total


read(Path(tables))
with Listener(socket, family="AF_UNIX") as listener, listener.accept() as orders:
    while order := orders.recv():
        if order == "cost":
            orders.send(cost())
            continue
        if isinstance(order, Path):
            read(order)
            orders.send(None)
            continue
        query, count = order
        if count is None:
            spark.conf.unset("spark.sql.shuffle.partitions")
        else:
            spark.conf.set("spark.sql.shuffle.partitions", count)
        began = time.time_ns()
        spark.sql(texts[query]).collect()
        orders.send((began / 1e6, time.time_ns() / 1e6))
spark.stop()
