"""Tests of Apache Comet, a native engine, which takes over the shuffles that the plugin has sized.

Comet is published for a few versions of Spark, and not for the default one: `make test-matrix` has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from integration.batch.plans import LEFT_ALONE, PATIENT, PLAIN, decisions, final_plan, rows
from integration.jar.each_jar import INSTALLED
from integration.streaming.driver import PLUGIN, Driver, driver
from integration.streaming.waiting import eventually
from spark_elastic.core.batch.questions import InitialCount, Ranges
from spark_elastic_tools.maven import fetch

# The newest release for each Spark.
COMETS = {"3.5_2.12": "0.12.0", "4.1_2.13": "1.2.0"}

pytestmark = [
    pytest.mark.integration,
    pytest.mark.matrix,
    pytest.mark.timeout(400),
    pytest.mark.skipif(INSTALLED.built_for not in COMETS, reason="Comet is not published for this Spark"),
]

COMET = {
    "spark.plugins": "org.apache.spark.CometPlugin",
    "spark.shuffle.manager": "org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager",
    "spark.memory.offHeap.enabled": "true",
    "spark.memory.offHeap.size": "1g",
}
ROWS, KEYS = 200_000, 500
FRESH = count()


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    spark = INSTALLED.built_for
    jars = fetch(f"org.apache.datafusion:comet-spark-spark{spark}:{COMETS[spark]}", transitive=False)
    with driver(tmp_path_factory.mktemp("comet") / "driver", jars) as started:
        yield started


@pytest.fixture(scope="module")
def tables(jvm: Driver, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the tables of the queries as Parquet, which Comet reads."""
    folder = tmp_path_factory.mktemp("tables")
    with jvm.session({}) as spark:
        numbers = spark.range(0, ROWS, 1, 4)
        numbers.select("id", (F.col("id") % KEYS).alias("key")).write.parquet(str(folder / "numbers"))
        names = spark.range(KEYS).select(F.col("id").alias("key"), F.col("id").cast("string").alias("name"))
        names.write.parquet(str(folder / "names"))
    return folder


def queries(spark: SparkSession, tables: Path) -> Mapping[str, DataFrame]:
    """Return an aggregation, a join below another one, and a global sort."""
    numbers, names = (spark.read.parquet(str(tables / name)) for name in ("numbers", "names"))
    return {
        "aggregation": numbers.groupBy("key").agg(F.sum("id"), F.count("*")),
        "join": numbers.join(names, "key").groupBy("name").agg(F.max("id")),
        "sort": numbers.where("id % 20 = 0").orderBy(F.desc("key"), "id"),
    }


def shuffled_by_comet(result: DataFrame) -> list[int]:
    """Return the number of partitions that each exchange has written; all of them must be Comet's."""
    plan = final_plan(result)
    every = re.findall(r"(\w*)Exchange (?:hash|range)partitioning\(.*, (\d+)\)", plan)
    assert {name for name, _ in every} == {"Comet"}, plan
    return [int(number) for _, number in every]


def is_advised(spark: SparkSession, tables: Path) -> bool:
    numbers = spark.read.parquet(str(tables / "numbers"))
    # A plan keeps its first number, even if it is Spark's own, so each check uses a new plan.
    result = numbers.where(F.col("id") > next(FRESH)).groupBy("key").count()
    result.collect()
    return shuffled_by_comet(result) != [200]


@pytest.mark.parametrize("ours_first", [True, False])
def test_its_shuffles_have_the_numbers_that_were_decided(
    jvm: Driver, tables: Path, tmp_path: Path, ours_first: bool
) -> None:
    with jvm.session({**PLAIN, **COMET}) as spark:
        plain = queries(spark, tables)
        expected = {name: rows(result) for name, result in plain.items()}
        assert {n for result in plain.values() for n in shuffled_by_comet(result)} == {200}
    plugins = [PLUGIN["spark.plugins"], COMET["spark.plugins"]]
    both = ",".join(plugins if ours_first else reversed(plugins))
    said = len(jvm.said())
    conf = {**PLAIN, **PATIENT, **COMET, "spark.plugins": both, "spark.elastic.journal.dir": str(tmp_path)}
    with jvm.session(conf) as spark:
        eventually(partial(is_advised, spark, tables), "a shuffle that Comet takes over is decided about")
        found = queries(spark, tables)
        assert {name: rows(result) for name, result in found.items()} == expected
        numbers = {name: shuffled_by_comet(result) for name, result in found.items()}
    # The number of rows of the join is unknown.
    assert numbers == {"aggregation": [4], "join": [201, 4, 4], "sort": [4]}
    decided = [entry.answer for entry in decisions(tmp_path) if isinstance(entry.question, InitialCount)]
    assert {answer["partitions"] for answer in decided} == {4, 201}
    # No question is asked about how its shuffles are read.
    assert not [entry for entry in decisions(tmp_path) if isinstance(entry.question, Ranges)]
    assert not [line for line in jvm.said()[said:] if LEFT_ALONE in line]
