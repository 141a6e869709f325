"""Keep count and sum of the values of each key, from Parquet files, until the process ends.

A repeated micro-batch replaces its first output. While there is a file OUTPUT/ill, micro-batches fail. FILES
is the largest number of files in a micro-batch, by default 1. After the shuffle each row keeps its slot, but
no processor, for ROW_MS ms, by default 0. TRIGGER is the time between two triggers.

usage: steady_upserts.py INPUT CHECKPOINT OUTPUT [FILES [ROW_MS TRIGGER]]
"""

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

given = sys.argv[1:]
source, checkpoint, output, files, row_ms, trigger = (
    *given,
    *("1", "0", "300 milliseconds")[len(given) - 3 :],
)
spark = SparkSession.builder.appName("steady upserts").getOrCreate()


def write(batch: DataFrame, number: int) -> None:
    if Path(output, "ill").exists():
        raise ValueError("the sink is ill")
    batch.write.mode("overwrite").parquet(f"{output}/{number:05d}")


rows = spark.readStream.schema("key long, value long").option("maxFilesPerTrigger", files).parquet(source)
if int(row_ms) > 0:
    # Enough tasks for any number of slots to share.
    rows = rows.repartition(12, "key").where(f"reflect('java.lang.Thread', 'sleep', {row_ms}L) = 'null'")
totals = rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("total"))
writer = totals.writeStream.outputMode("update").queryName("upserts").option("checkpointLocation", checkpoint)
writer.trigger(processingTime=trigger).foreachBatch(write).start().awaitTermination()
