"""A job that is compared: usage: spark-submit job.py OUTPUT."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def main(output: str) -> None:
    """Write the sums of a hundred groups, doubles among them."""
    spark = SparkSession.builder.appName("compared").getOrCreate()
    rows = spark.range(200_000).select((F.col("id") % 100).alias("k"), (F.col("id") / 7.0).alias("x"))
    sums = rows.groupBy("k").agg(F.sum("x").alias("sum"), F.count("*").alias("rows"))
    sums.write.mode("overwrite").parquet(output)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
