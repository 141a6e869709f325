"""Keep count and sum of the values of each key; in each micro-batch one of two tasks reads a shuffle slowly.

It asks for one block after another, and takes its time for each row, so it goes on reading when the other
task, and thereby its executor, has nothing left to do. A repeated micro-batch replaces its first output.

usage: slow_reader.py INPUT CHECKPOINT OUTPUT FILES
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

source, checkpoint, output, files = sys.argv[1:]
WRITERS, ROWS_EACH = 8, 7
spark = SparkSession.builder.appName("slow reader").getOrCreate()
sleeps = F.expr("reflect('java.lang.Thread', 'sleep', 400L)")
first = F.col("id") % ROWS_EACH == 0
# All but the first of a writer's rows go to one partition: the hashes of these two differ in their last bit.
partition = F.when(first, 2).otherwise(1)


def read_slowly() -> None:
    # All writers take as long, so each executor has some.
    written = spark.range(0, WRITERS * ROWS_EACH, 1, WRITERS).select(
        "id", F.when(first, sleeps).alias("slept")
    )
    shuffled = written.repartition(2, partition).select("slept", sleeps.alias("again"))
    shuffled.write.format("noop").mode("overwrite").save()


def write(batch: DataFrame, number: int) -> None:
    batch.write.mode("overwrite").parquet(f"{output}/{number:05d}")
    read_slowly()


rows = spark.readStream.schema("key long, value long").option("maxFilesPerTrigger", files).parquet(source)
totals = rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("total"))
writer = totals.writeStream.outputMode("update").queryName("upserts").option("checkpointLocation", checkpoint)
writer.trigger(processingTime="300 milliseconds").foreachBatch(write).start().awaitTermination()
