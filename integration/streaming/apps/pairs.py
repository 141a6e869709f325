"""Join Parquet files with themselves by key, as two streams, and write the pairs of values, batch by batch.

It reads all available input and ends. A repeated micro-batch replaces its first output. The error of a query
that cannot run is written to OUTPUT/error.

usage: pairs.py INPUT CHECKPOINT OUTPUT
"""

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

source, checkpoint, output = sys.argv[1:]
spark = SparkSession.builder.appName("pairs").getOrCreate()


def values(name: str) -> DataFrame:
    rows = spark.readStream.schema("key long, value long").option("maxFilesPerTrigger", 1).parquet(source)
    return rows.withColumnRenamed("value", name)


def write(batch: DataFrame, number: int) -> None:
    batch.write.mode("overwrite").parquet(f"{output}/{number:05d}")


Path(output).mkdir(exist_ok=True)
writer = values("one").join(values("other"), "key").writeStream.option("checkpointLocation", checkpoint)
try:
    writer.trigger(availableNow=True).foreachBatch(write).start().awaitTermination()
except Exception as error:
    Path(output, "error").write_text(str(error))
spark.stop()
