"""A plain batch job that computes what both queries should have written, and compares.

usage: python -m spark_elastic_lab.demo.compare INCOMING ORDERS OUTPUT RESULT [CLASSPATH]
It writes to RESULT, per query: {"rows_in", "rows_out", "rows_expected", "missing", "surplus"}.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_elastic_lab.demo.apps.lineitem_stream import arrived, enrich, totals
from spark_elastic_lab.demo.cluster import SMALL_JVM

_WATERMARK = "interval 5 seconds"
_COLUMNS = (
    "l_orderkey",
    "l_linenumber",
    "l_quantity",
    "l_extendedprice",
    "l_discount",
    "l_shipmode",
    "arrival",
)


def difference(found: DataFrame, expected: DataFrame) -> dict[str, int]:
    """Count the rows of each side and those of only one side in one pass; a duplicated row is surplus."""
    sides = found.withColumn("side", F.lit(1)).unionByName(expected.withColumn("side", F.lit(-1)))
    counts = sides.groupBy(*found.columns).agg(
        F.count_if(F.col("side") > 0).alias("found"), F.count_if(F.col("side") < 0).alias("expected")
    )
    surplus = F.col("found") - F.col("expected")
    row = counts.agg(
        F.sum("found").alias("rows_out"),
        F.sum("expected").alias("rows_expected"),
        F.sum(F.greatest(-surplus, F.lit(0))).alias("missing"),
        F.sum(F.greatest(surplus, F.lit(0))).alias("surplus"),
    ).first()
    # An aggregate without groups always returns a row; its sums are null if neither side has rows.
    assert row is not None
    return {name: int(value or 0) for name, value in row.asDict().items()}


def closed(windows: DataFrame, lines: DataFrame) -> DataFrame:
    """Keep the windows that the final watermark has closed: append mode writes only those."""
    latest = lines.agg((F.max("arrival") - F.expr(_WATERMARK)).alias("watermark"))
    return windows.join(latest, windows["end"] <= latest["watermark"], "left_semi")


def compare(spark: SparkSession, incoming: str, orders: str, output: str) -> dict[str, dict[str, int]]:
    """Return the comparison of each query's output with the batch result over the same input."""
    # Both results read the input once, and only these columns.
    lines = arrived(spark.read, incoming).select(*_COLUMNS).cache()
    rows_in = {"rows_in": lines.count()}
    expected = {
        "enrichment": enrich(lines, spark.read.parquet(orders)),
        "totals": closed(totals(lines), lines),
    }
    return {
        # A lookup's answer is not compared.
        name: rows_in | difference(spark.read.parquet(f"{output}/{name}").select(*frame.columns), frame)
        for name, frame in expected.items()
    }


def main(incoming: str, orders: str, output: str, result: str, class_path: str = "") -> None:
    """Run the comparison in a local Spark and write it as JSON."""
    builder = SparkSession.builder.master("local[2]").appName("compare")
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.driver.extraClassPath": class_path,
        "spark.driver.extraJavaOptions": SMALL_JVM,
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    Path(result).write_text(json.dumps(compare(spark, incoming, orders, output)))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
