"""Keep count and sum of the values of each key, from JSON files, and append each micro-batch's number to a
file.

usage: totals.py INPUT CHECKPOINT BATCHES
"""

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

source, checkpoint, batches = sys.argv[1:]
spark = SparkSession.builder.appName("totals").getOrCreate()


def note(batch: DataFrame, number: int) -> None:
    batch.count()
    with Path(batches).open("a") as file:
        file.write(f"{number}\n")


rows = spark.readStream.schema("key int, value int").option("maxFilesPerTrigger", 1).json(source)
totals = rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("total"))
writer = totals.writeStream.outputMode("update").option("checkpointLocation", checkpoint)
writer.foreachBatch(note).start().awaitTermination()
