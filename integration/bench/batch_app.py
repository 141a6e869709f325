"""Runs the queries of TPC-H, some times each, and notes when each run began and ended.

usage: batch_app.py TABLES QUERIES OUT ROUNDS COUNT...

TABLES is a folder of parquet files, QUERIES a JSON file of SQL by name, OUT gets a JSON line per run: query,
count, began and ended (epoch ms). Each COUNT is a number of initial shuffle partitions, or `-` for none set.
The first round warms up and is not written down.
"""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

tables, queries, out, rounds, *counts = sys.argv[1:]
spark = SparkSession.builder.appName("batch").getOrCreate()
for table in Path(tables).glob("*.parquet"):
    spark.read.parquet(str(table)).createOrReplaceTempView(table.stem)
texts = json.loads(Path(queries).read_text(encoding="utf-8"))
with Path(out).open("w", encoding="utf-8") as file:
    for number in range(int(rounds) + 1):
        for name, text in texts.items():
            for count in counts if number else counts[:1]:
                if count == "-":
                    spark.conf.unset("spark.sql.shuffle.partitions")
                else:
                    spark.conf.set("spark.sql.shuffle.partitions", count)
                began = time.time_ns()
                spark.sql(text).collect()
                ended = time.time_ns()
                if number:
                    run = {"query": name, "count": count, "began": began / 1e6, "ended": ended / 1e6}
                    file.write(json.dumps(run) + "\n")
spark.stop()
