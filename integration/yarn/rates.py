"""Run two queries over generated rows, `counts` with state and `spread` without, until one ends.

usage: rates.py CHECKPOINTS
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

(checkpoints,) = sys.argv[1:]
spark = SparkSession.builder.appName("rates").getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
keyed = rows.withColumn("key", F.col("value") % 7)
for name, query in {
    "counts": keyed.groupBy("key").count().writeStream.outputMode("update"),
    "spread": keyed.repartition("key").writeStream,
}.items():
    named = query.format("noop").queryName(name).option("checkpointLocation", f"{checkpoints}/{name}")
    named.trigger(processingTime="500 milliseconds").start()
spark.streams.awaitAnyTermination()
spark.stop()
