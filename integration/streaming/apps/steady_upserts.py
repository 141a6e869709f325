"""Keep count and sum of the values of each key, from Parquet files, until the process ends.

A repeated micro-batch replaces its first output. While there is a file OUTPUT/ill, micro-batches fail. FILES
is the largest number of files in a micro-batch, 1 if it is not given.

usage: steady_upserts.py INPUT CHECKPOINT OUTPUT [FILES]
"""

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

source, checkpoint, output, files = (*sys.argv[1:], "1")[:4]
spark = SparkSession.builder.appName("steady upserts").getOrCreate()


def write(batch: DataFrame, number: int) -> None:
    if Path(output, "ill").exists():
        raise ValueError("the sink is ill")
    batch.write.mode("overwrite").parquet(f"{output}/{number:05d}")


rows = spark.readStream.schema("key long, value long").option("maxFilesPerTrigger", files).parquet(source)
totals = rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("total"))
writer = totals.writeStream.outputMode("update").queryName("upserts").option("checkpointLocation", checkpoint)
writer.trigger(processingTime="300 milliseconds").foreachBatch(write).start().awaitTermination()
