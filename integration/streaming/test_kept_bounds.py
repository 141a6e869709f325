"""Bounds that were set over REST outlive the policy process and the driver, and end with a DELETE."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from integration.streaming.driver import Driver, policies_of
from integration.streaming.http import Client
from integration.streaming.launch import AT_ONCE, WITH_PLUGIN
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

CONF = {
    **WITH_PLUGIN,
    "spark.ui.enabled": "true",
    "spark.elastic.schedulerMode": "adaptive",
    # Nothing is known but what is kept beside the checkpoint.
    "spark.elastic.journal.dir": "none",
    **AT_ONCE,
}


class Counts:
    """A query that resumes its checkpoint, and the API of its driver."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        rows = spark.readStream.format("rate").option("rowsPerSecond", 20).load()
        counts = rows.groupBy((F.col("value") % 7).alias("key")).count()
        writer = counts.writeStream.format("noop").queryName("counts").outputMode("update")
        self.query: StreamingQuery = writer.option("checkpointLocation", str(folder)).start()
        url = spark.sparkContext.uiWebUrl
        assert url is not None
        self.api = Client(url, "/elastic/api/v1")
        self.path = f"/queries/{self.query.id}/resource-requirements"

    def bounds(self) -> tuple[int, int]:
        shown = self.api.get(self.path).json["shuffle"]["parallelism"]
        return shown["lowerBound"], shown["upperBound"]

    def partitions(self) -> int:
        """Return how many partitions the state of the last micro-batch has, 0 before the first."""
        progress = self.query.lastProgress
        return 0 if progress is None else int(progress["stateOperators"][0]["numShufflePartitions"])

    def runs_in(self, partitions: int) -> None:
        eventually(lambda: self.partitions() == partitions, f"it runs in {partitions} partitions")


def test_bounds_outlive_policy_and_driver_until_they_are_taken_back(jvm: Driver, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    kept = folder / "_elastic" / "bounds"
    with jvm.session(CONF) as spark:
        counts = Counts(spark, folder)
        counts.runs_in(2)
        one = {"shuffle": {"parallelism": {"lowerBound": 1, "upperBound": 1}}}
        assert counts.api.put(counts.path, one).status == 200
        eventually(kept.exists, "the bounds are kept")
        counts.runs_in(1)
        (policy,) = policies_of(jvm.pid)
        policy.kill()
        psutil.wait_procs([policy])
        eventually(lambda: policies_of(jvm.pid), "another policy process is there")
        eventually(lambda: counts.api.get("/overview").status == 200, "it answers")
        assert counts.bounds() == (1, 1)

    with jvm.session(CONF) as spark:
        counts = Counts(spark, folder)
        counts.runs_in(1)
        assert counts.bounds() == (1, 1)
        said = [decision["reason"] for decision in counts.api.get("/decisions").json["decisions"]]
        assert "bounds_recalled" in said
        assert counts.api.request("DELETE", counts.path).status == 200
        eventually(lambda: not kept.exists(), "nothing is kept")
        counts.runs_in(2)

    with jvm.session(CONF) as spark:
        counts = Counts(spark, folder)
        counts.runs_in(2)
        assert counts.bounds() == (1, 32_768)


def test_what_cannot_be_read_is_said_and_keeps_nothing_from_starting(jvm: Driver, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    kept = folder / "_elastic" / "bounds"
    kept.parent.mkdir(parents=True)
    kept.write_text("not for us")
    with jvm.session(CONF) as spark:
        counts = Counts(spark, folder)
        counts.runs_in(2)
        said = [decision["reason"] for decision in counts.api.get("/decisions").json["decisions"]]
        assert "kept_bounds_unusable" in said
    assert kept.read_text() == "not for us"
