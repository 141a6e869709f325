"""Keep count and sum of the values of each key, and run a job on executors of a second resource profile.

The job is one of the JVM, so its executors need no Python of the driver's version. A repeated micro-batch
replaces its first output.

usage: two_profiles.py INPUT CHECKPOINT OUTPUT FILES
"""

from __future__ import annotations

import sys
from typing import Any

from pyspark.resource import ExecutorResourceRequests, ResourceProfileBuilder, TaskResourceRequests
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

source, checkpoint, output, files = sys.argv[1:]
spark = SparkSession.builder.appName("two profiles").getOrCreate()
executor = ExecutorResourceRequests().cores(1).memory("512m").memoryOverhead("256m")
profile: Any = ResourceProfileBuilder().require(executor).require(TaskResourceRequests().cpus(1)).build
context: Any = spark.sparkContext._jsc
numbers = context.sc().range(0, 1000, 1, 2).withResources(profile._java_resource_profile)


def write(batch: DataFrame, number: int) -> None:
    batch.write.mode("overwrite").parquet(f"{output}/{number:05d}")
    assert numbers.count() == 1000


rows = spark.readStream.schema("key long, value long").option("maxFilesPerTrigger", files).parquet(source)
totals = rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("total"))
writer = totals.writeStream.outputMode("update").queryName("upserts").option("checkpointLocation", checkpoint)
writer.trigger(processingTime="300 milliseconds").foreachBatch(write).start().awaitTermination()
