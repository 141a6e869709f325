"""Tests of an executor that is lost between the map side and the reduce side of a decided stage."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from integration.batch.plans import LEFT_ALONE, advised, decisions
from integration.cluster.application import executors_below
from integration.streaming.driver import Driver
from integration.streaming.waiting import eventually
from spark_elastic.core.batch.questions import Ranges

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

CLUSTER = {
    "spark.master": "local-cluster[2,1,1024]",
    "spark.executor.memory": "512m",
    # Lost blocks are reported at once.
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "1s",
}
PAUSE_MS = 2_000


def slowly(spark: SparkSession) -> list[Row]:
    """Count by key; reading the shuffle sleeps at each of the four keys."""
    counts = spark.range(0, 8_000, 1, 2).groupBy((F.col("id") % 4).alias("k")).count()
    return counts.selectExpr(
        "k", "count AS n", f"reflect('java.lang.Thread', 'sleep', {PAUSE_MS} + k)"
    ).collect()


def test_the_map_side_runs_again_and_the_answer_is_right(jvm: Driver, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with advised(jvm, journal, CLUSTER) as spark:
        eventually(lambda: len(executors_below(jvm.pid)) == 2, "two executors are there")
        before = len(decisions(journal))
        answers: list[list[Row]] = []
        query = threading.Thread(target=lambda: answers.append(slowly(spark)))
        query.start()

        def read() -> bool:
            return any(isinstance(entry.question, Ranges) for entry in decisions(journal)[before:])

        eventually(read, "what to read is decided")
        # Each executor has a part of the map output.
        victim, _ = executors_below(jvm.pid).values()
        victim.kill()
        query.join(200)
        assert answers
        assert sorted((row["k"], row["n"]) for row in answers[0]) == [(k, 2_000) for k in range(4)]
        eventually(lambda: any("Lost executor" in line for line in jvm.said()), "Spark has lost an executor")
        assert [line for line in jvm.said() if LEFT_ALONE in line] == []
