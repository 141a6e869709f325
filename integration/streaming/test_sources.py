"""Tests that sources follow their bounds from the next micro-batch on, and read every row once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from integration.spark_minor import SPARK_MINOR
from integration.streaming.driver import Driver, driver
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.http import Client
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

CONF = {
    **WITH_PLUGIN,
    # Separate executors, which do not have the jar.
    "spark.master": "local-cluster[1,2,1024]",
    "spark.executor.memory": "512m",
    "spark.ui.enabled": "true",
    "spark.sql.files.openCostInBytes": "100",
    "spark.elastic.scheduler-mode": "adaptive",
    "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
    "spark.elastic.query.files.source-0.upperBound": "2",
}
FILES = 6


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with driver(tmp_path_factory.mktemp("sources") / "driver") as jvm, session(jvm) as running:
        yield running


def session(jvm: Driver) -> Any:
    return jvm.session(CONF)


class Shown:
    """A query as the REST API shows it."""

    def __init__(self, spark: SparkSession, query: StreamingQuery) -> None:
        self.query = query
        url = spark.sparkContext.uiWebUrl
        assert url is not None
        self._api = Client(url, "/elastic/api/v1")

    def now(self) -> Any:
        return self._api.get(f"/queries/{self.query.id}").json

    def bound(self, **bounds: tuple[int, int]) -> None:
        path = f"/queries/{self.query.id}/resource-requirements"
        wanted = self._api.get(path).json
        for vertex, (lower, upper) in bounds.items():
            wanted[vertex.replace("_", "-")]["parallelism"] = {"lowerBound": lower, "upperBound": upper}
        reply = self._api.put(path, wanted)
        assert reply.status == 200, reply.text
        assert self._api.get(path).json == wanted

    def said(self, reason: str) -> list[str]:
        found = self._api.get(f"/decisions?query={self.query.id}").json["decisions"]
        return [decision["message"] for decision in found if decision["reason"] == reason]

    def tasks(self) -> list[tuple[str, int, int | None]]:
        """Return the reads of the last micro-batch: vertex, rows, tasks."""
        last = self.now()["lastBatch"]
        return [] if last is None else [(s["vertex"], s["inputRows"], s["tasks"]) for s in last["sources"]]


@pytest.mark.skipif(SPARK_MINOR < (4, 0), reason="scans of files do not say whose they are before 4.0")
def test_the_bounds_of_a_file_source_are_those_of_its_next_batch(spark: SparkSession, tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "in")
    sink, checkpoint = str(tmp_path / "out"), str(tmp_path / "checkpoint")
    stream = spark.readStream.schema(SCHEMA).json(str(inbox.folder))
    query = (
        stream.writeStream.format("parquet")
        .queryName("files")
        .option("checkpointLocation", checkpoint)
        .trigger(processingTime="300 milliseconds")
        .start(sink)
    )
    shown = Shown(spark, query)

    def read(rows: int) -> set[int | None]:
        """Return the numbers of tasks that read the new files, which may take more than one micro-batch."""
        since = len(query.recentProgress)
        inbox.put(files=FILES, rows=rows)
        query.processAllAvailable()
        batches = [p["batchId"] for p in query.recentProgress[since:] if p["numInputRows"]]
        eventually(lambda: shown.now()["lastBatch"]["batch"] >= batches[-1], "the policy has heard of it")
        return {tasks for _, rows, tasks in shown.tasks() if rows}

    inbox.put()
    eventually(lambda: [rows for _, rows, _ in shown.tasks()] == [10], "the first batch is through")
    run = query.runId
    assert read(20) <= {1, 2}
    shown.bound(source_0=(9, 9))
    # The answer confirms the declaration; the driver gets the bounds a moment later.
    eventually(lambda: read(20) == {9}, "batches are read within the bounds")
    shown.bound(source_0=(1, 32_768))
    eventually(lambda: all(tasks is not None and tasks < 9 for tasks in read(20)), "they are read without")
    assert (shown.now()["restarts"], query.runId) == (0, run)
    assert shown.now()["sources"] == [f"FileSource[{inbox.folder}]"]
    assert not shown.said("source_not_divisible")
    query.stop()
    kept = spark.read.parquet(sink)
    assert sorted(row["value"] for row in kept.collect()) == inbox.values()


def test_of_other_sources_partitions_are_joined_and_what_cannot_be_had_is_said(
    spark: SparkSession, tmp_path: Path
) -> None:
    def rate(partitions: int) -> DataFrame:
        rows = spark.readStream.format("rate").option("rowsPerSecond", 60)
        return rows.option("numPartitions", partitions).load()

    both = rate(6).union(rate(3)).groupBy((F.col("value") % 5).alias("key")).count()
    query = (
        both.writeStream.format("noop")
        .queryName("both")
        .outputMode("update")
        .trigger(processingTime="300 milliseconds")
        .start()
    )
    shown = Shown(spark, query)

    latest: dict[str, int] = {}

    def read(*tasks: int) -> bool:
        # A micro-batch need not have rows of both sources.
        latest.update((vertex, number) for vertex, _, number in shown.tasks() if number is not None)
        return [latest[vertex] for vertex in sorted(latest)] == list(tasks)

    eventually(lambda: read(6, 3), "both sources are read as Spark has it")
    shown.bound(source_0=(1, 2), source_1=(5, 8))
    eventually(lambda: read(2, 3), "the partitions of the first source are joined")
    (message,) = shown.said("source_not_divisible")
    assert message.startswith("Cannot read source-1 (")
    assert [vertex for vertex, _, _ in shown.tasks()] == ["source-0", "source-1"]
    query.stop()
