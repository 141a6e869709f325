"""Facts in a query's final plan about its shuffles, and sessions with and without the plugin."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from integration.streaming.driver import PLUGIN, Driver
from integration.streaming.waiting import eventually
from spark_elastic.runtime.entries import StageEntry, read_journal

PLAIN = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
# On a busy machine an answer may take longer than the default timeout.
PATIENT = {"spark.elastic.python": sys.executable, "spark.elastic.batch.decisionTimeout": "20s"}

# A plan keeps its number of partitions, so each check whether the policy answers needs a new plan.
_FRESH = count(100)

# Logged by the driver when one of our rules has failed.
LEFT_ALONE = "a part of a plan is left unchanged"


def rows(result: DataFrame) -> list[Any]:
    """Return the rows, sorted."""
    return sorted(result.collect(), key=repr)


def final_plan(result: DataFrame) -> str:
    """Return the plan of a DataFrame that has run, as text."""
    text = str(result._jdf.queryExecution().executedPlan().toString())
    assert "AdaptiveSparkPlan isFinalPlan=true" in text, text
    return text.partition("\n+- == Initial Plan ==")[0]


def written(plan: str) -> list[int]:
    """Return the number of partitions that each exchange by hash or by ranges has written."""
    runs = [line for line in plan.splitlines() if "ReusedExchange" not in line]
    found = (re.search(r" Exchange (?:hash|range)partitioning\(.*, (\d+)\)", line) for line in runs)
    return [int(match[1]) for match in found if match]


@contextmanager
def advised(driver: Driver, journal: Path, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """Start a session with the plugin, and wait until questions about its stages are answered."""
    settings = {**PLUGIN, **PLAIN, **PATIENT, "spark.elastic.journal.dir": str(journal), **conf}
    with driver.session(settings) as spark:
        eventually(lambda: asked(spark), "a batch stage is decided about")
        yield spark


def asked(spark: SparkSession) -> bool:
    """Run a small new query, and return whether the policy has chosen its partitions."""
    small = spark.range(next(_FRESH)).groupBy((F.col("id") % 7).alias("k")).count()
    small.collect()
    return written(final_plan(small)) != [200]


def decisions(journal: Path) -> list[StageEntry]:
    """Return all decisions about stages in the journal in a folder."""
    files = sorted(journal.glob("*.jsonl*"))
    return [entry for file in files for _, entry in read_journal(file) if isinstance(entry, StageEntry)]


def same(one: Any, other: Any, tolerance: float = 1e-9) -> bool:
    """Compare two values; sums of floating point numbers depend on the order of the rows."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=tolerance)
    return bool(one == other)
