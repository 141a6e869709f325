"""Queries of every shape, and the number of partitions that each of their shuffles should write."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from integration.spark_minor import SPARK_MINOR

Query = Callable[[SparkSession], DataFrame]


def numbers(spark: SparkSession, n: int = 2_000) -> DataFrame:
    return spark.range(0, n, 1, 3).select("id", (F.col("id") % 50).alias("k"), (F.col("id") * 3).alias("v"))


def totals(spark: SparkSession) -> DataFrame:
    return numbers(spark).groupBy("k").agg(F.sum("v").alias("total"))


def join(spark: SparkSession) -> DataFrame:
    return numbers(spark).join(numbers(spark, 70).withColumnRenamed("v", "w"), "id")


def join_of_totals(spark: SparkSession) -> DataFrame:
    """Aggregate one side; its shuffle also serves the join."""
    return totals(spark).join(numbers(spark), "k")


def union(spark: SparkSession) -> DataFrame:
    both = totals(spark).unionByName(numbers(spark).groupBy("k").agg(F.max("v").alias("total")))
    return both.groupBy("k").agg(F.sum("total"))


def window(spark: SparkSession) -> DataFrame:
    return numbers(spark).withColumn("n", F.row_number().over(Window.partitionBy("k").orderBy("id")))


def reuse(spark: SparkSession) -> DataFrame:
    parts = totals(spark)
    return parts.alias("a").join(parts.alias("b"), F.col("a.k") == F.col("b.k"))


def subquery(spark: SparkSession) -> DataFrame:
    totals(spark).createOrReplaceTempView("totals")
    return spark.sql("SELECT * FROM totals WHERE total > (SELECT avg(total) FROM totals)")


def cached(spark: SparkSession) -> DataFrame:
    kept = totals(spark).cache()
    kept.count()
    return kept.join(numbers(spark), "k")


def insert(spark: SparkSession) -> DataFrame:
    spark.sql("DROP TABLE IF EXISTS kept")
    totals(spark).withColumn("part", F.col("k") % 3).write.partitionBy("part").saveAsTable("kept")
    spark.sql(
        "INSERT INTO kept SELECT k, max(id), k % 3 FROM (SELECT id, id % 40 k FROM range(900)) GROUP BY k"
    )
    return spark.table("kept").groupBy("part").agg(F.sum("total"))


def overwritten(spark: SparkSession) -> DataFrame:
    """Overwrite the partitions that a query has rows of, and leave the others."""
    spark.sql("DROP TABLE IF EXISTS parts")
    numbers(spark).select("v", (F.col("k") % 5).alias("part")).write.partitionBy("part").saveAsTable("parts")
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    few = totals(spark).select("total", (F.col("k") % 2).alias("part"))
    few.groupBy("part").agg(F.sum("total")).select("sum(total)", "part").write.insertInto(
        "parts", overwrite=True
    )
    spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    return spark.table("parts").groupBy("part").agg(F.sum("v"))


def python_rows(spark: SparkSession) -> DataFrame:
    twice = F.udf(lambda value: value * 2, "long")
    return totals(spark).select("k", twice("total").alias("total"))


def python_groups(spark: SparkSession) -> DataFrame:
    def count(rows: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"k": rows["k"][:1], "n": [len(rows)]})

    return numbers(spark).groupBy("k").applyInPandas(count, "k long, n long")


def cartesian(spark: SparkSession) -> DataFrame:
    few = totals(spark).where("k < 9")
    return few.crossJoin(few.withColumnRenamed("k", "j").select("j")).select("k", "j")


def bucketed(spark: SparkSession) -> DataFrame:
    spark.sql("DROP TABLE IF EXISTS buckets")
    numbers(spark).write.bucketBy(8, "k").saveAsTable("buckets")
    return spark.table("buckets").join(numbers(spark).select(F.col("k").alias("j")), F.col("k") == F.col("j"))


# A number that the policy decides, not Spark or the application: 4 for a small shuffle on two slots.
OURS = 0


WRITTEN: dict[Query, list[int]] = {
    totals: [OURS],
    join: [OURS, OURS],
    join_of_totals: [OURS, OURS],
    # From 4.1 on, Spark knows that both sides have the aggregation's keys in the same places.
    union: [OURS, OURS] if SPARK_MINOR >= (4, 1) else [OURS, OURS, OURS],
    window: [OURS],
    lambda spark: numbers(spark).orderBy("v"): [OURS],
    lambda spark: totals(spark).orderBy("total"): [OURS, OURS],
    reuse: [OURS],
    # The plan of the subquery also shows its exchange as it was before it ran.
    subquery: [OURS, OURS],
    # The size of a partitioned table without statistics is unknown.
    insert: [200],
    lambda spark: numbers(spark).repartition("k"): [OURS],
    lambda spark: numbers(spark).join(F.broadcast(totals(spark)), "k"): [OURS],
    lambda spark: numbers(spark).distinct().groupBy("k").count(): [OURS],
    # The application's own numbers, and those of a table.
    lambda spark: numbers(spark).repartition(7, "k").groupBy("k").count(): [7],
    lambda spark: numbers(spark).repartition(7, "k"): [7],
    lambda spark: totals(spark).repartition(200, "k"): [200],
    lambda spark: numbers(spark).repartition(7): [],
    lambda spark: numbers(spark).repartitionByRange("v"): [200],
    lambda spark: numbers(spark).repartitionByRange(7, "v"): [7],
    # Spark keeps the partitions of cached data, and the join adopts their number. The cached plan is shown
    # twice, once in its first form.
    cached: [200, 200, 200],
    bucketed: [8],
    # The plan of this one is shown twice as well.
    overwritten: [200],
    python_rows: [OURS],
    python_groups: [OURS],
    # Both sides of a cross join keep Spark's number: its work does not depend on its bytes.
    cartesian: [200],
}
