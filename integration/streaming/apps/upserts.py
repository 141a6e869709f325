"""Keep count and sum of the values of each key, from Parquet files, and write the changes, batch by batch.

Each query reads all available input and ends; they run one after another. A repeated micro-batch replaces its
first output. The error of a query that cannot run is written to OUTPUT/error.

usage: upserts.py INPUT CHECKPOINT OUTPUT [CHECKPOINT OUTPUT]...
"""

import sys
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

source, *places = sys.argv[1:]
spark = SparkSession.builder.appName("upserts").getOrCreate()
rows = spark.readStream.schema("key long, value long").option("maxFilesPerTrigger", 1).parquet(source)
totals = rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("total"))


def writer_to(output: str) -> Callable[[DataFrame, int], None]:
    def write(batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").parquet(f"{output}/{number:05d}")

    return write


for checkpoint, output in zip(places[::2], places[1::2], strict=True):
    Path(output).mkdir(exist_ok=True)
    writer = totals.writeStream.outputMode("update").option("checkpointLocation", checkpoint)
    try:
        writer.trigger(availableNow=True).foreachBatch(writer_to(output)).start().awaitTermination()
    except Exception as error:
        Path(output, "error").write_text(str(error))
spark.stop()
