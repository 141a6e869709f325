"""TPC-H for batch tests and the bench: tables made by tpchgen-cli, and the queries of Spark's own tests."""

from __future__ import annotations

import zipfile
from pathlib import Path

from pyspark.sql import SparkSession

from integration.commands import output_of
from integration.spark_suites.suite_jars import suite_jars
from spark_elastic_lab.demo.data import DataFailure, generator

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")


def queries() -> dict[str, str]:
    """Return the SQL of q1 to q22, read from the tests jar of the installed Spark; raises JarFailure."""
    with zipfile.ZipFile(suite_jars()[0]) as jar:
        return {f"q{number}": jar.read(f"tpch/q{number}.sql").decode() for number in range(1, 23)}


def generate(folder: Path, scale: float) -> None:
    """Write all tables at `scale` (1 = 1 GB) as parquet files into `folder`. Raises DataFailure."""
    program = generator()
    if program is None:
        raise DataFailure("tpchgen-cli is not installed")
    command = [program, "parquet", "-s", str(scale), "--output-dir", str(folder)]
    output_of(command, DataFailure)


def register(spark: SparkSession, folder: Path) -> None:
    """Register the tables in `folder` under their names in a session."""
    for table in TABLES:
        spark.read.parquet(str(folder / f"{table}.parquet")).createOrReplaceTempView(table)
