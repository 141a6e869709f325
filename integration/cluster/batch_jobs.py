"""Batch jobs whose tasks sleep: they take equally long on any machine, and need no processor."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def run_sleepers(spark: SparkSession, tasks: int, task_s: float) -> None:
    """Run a job of one stage with this many tasks, each of which takes this long."""
    sleep = f"reflect('java.lang.Thread', 'sleep', bigint({round(task_s * 1_000)}))"
    rows = spark.range(0, tasks, 1, tasks).withColumn("slept", F.expr(sleep))
    # A column that is not read is not computed.
    assert rows.where("slept is null or slept is not null").count() == tasks
