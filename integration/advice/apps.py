"""Applications of plain Spark whose event logs are read: usage: apps.py NAME FOLDER SECONDS."""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def stream(spark: SparkSession, folder: Path, seconds: float) -> None:
    """Count rows of a steady source by key, with a trigger of a second."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", 200).load()
    counts = rows.groupBy((F.col("value") % 50).alias("key")).count()
    query = (
        counts.writeStream.queryName("counts")
        .outputMode("update")
        .format("noop")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime="1 second")
        .start()
    )
    query.awaitTermination(round(seconds))
    query.stop()


def batch(spark: SparkSession, folder: Path, seconds: float) -> None:
    """Aggregate a few numbers in far too many partitions, and in too few."""
    numbers = spark.range(0, 200_000, numPartitions=4).withColumn("key", F.col("id") % 1_000)
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    for partitions in ("200", "1"):
        spark.conf.set("spark.sql.shuffle.partitions", partitions)
        numbers.groupBy("key").agg(F.sum("id"), F.collect_list("id")).write.format("noop").mode(
            "overwrite"
        ).save()


def both(spark: SparkSession, folder: Path, seconds: float) -> None:
    """Run one after the other."""
    stream(spark, folder, seconds)
    batch(spark, folder, seconds)


if __name__ == "__main__":
    session = SparkSession.builder.appName(f"advice-{sys.argv[1]}").getOrCreate()
    print(f"UI: {session.sparkContext.uiWebUrl}\n", end="", flush=True)
    began = time.monotonic()
    {"stream": stream, "batch": batch, "both": both}[sys.argv[1]](
        session, Path(sys.argv[2]), float(sys.argv[3])
    )
    session.stop()
