"""Tests that with dynamic allocation at its defaults a query gets its first executor, and later ones."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from integration.cluster.application import Application, application
from integration.cluster.queries import Places, lines, start_enrichment, start_totals, suppliers
from integration.streaming.driver import Driver
from integration.streaming.waiting import eventually
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

DYNAMIC = "spark.dynamicAllocation"
CONF = {
    f"{DYNAMIC}.enabled": "true",
    f"{DYNAMIC}.shuffleTracking.enabled": "true",
    f"{DYNAMIC}.executorIdleTimeout": "2s",
    f"{DYNAMIC}.shuffleTracking.timeout": "2s",
    "spark.executor.cores": "2",
    "spark.sql.shuffle.partitions": "6",
}


@pytest.fixture(scope="module")
def app(
    master: Cluster, jvm: Driver, tables: Tables, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    with application(master, jvm, tables, tmp_path_factory.mktemp("dynamic"), CONF) as running:
        yield running


def test_a_query_without_an_executor_starts_and_brings_one(app: Application) -> None:
    app.workers.append(app.cluster.start_worker(2))
    eventually(lambda: app.story.slots.total == 0, "Spark has given back what it began with")
    app.feed.start()
    query = app.start("totals", start_totals)
    eventually(lambda: query.lastProgress is not None, "its first micro-batch")
    assert "start_for_executors" in app.story.reasons("totals")
    assert "waiting_for_resources" not in app.story.reasons("totals")
    app.check_alive()


def test_after_all_executors_have_idled_out_another_query_brings_one_as_well(app: Application) -> None:
    app.queries.pop("totals").stop()
    eventually(lambda: app.story.slots.total == 0, "idle executors are gone")
    query = app.start("enrichment", start_enrichment)
    eventually(lambda: query.lastProgress is not None, "its first micro-batch")
    assert "waiting_for_resources" not in app.story.reasons("enrichment")
    app.check_alive()


@pytest.mark.matrix
def test_a_load_that_grows_later_brings_more_executors(app: Application, tmp_path: Path) -> None:
    app.queries.pop("enrichment").stop()
    app.workers.append(app.cluster.start_worker(2))
    loaded = tmp_path / "loaded"

    def work(changed: DataFrame, _batch: int) -> None:
        changed.rdd.foreachPartition(lambda rows: time.sleep(1.5 if loaded.exists() else 0))

    def start_work(spark: SparkSession, places: Places, name: str) -> StreamingQuery:
        changes = suppliers(lines(spark, places)).writeStream.queryName(name)
        return changes.outputMode("update").foreachBatch(work).start()

    query = app.start("work", start_work)
    eventually(lambda: query.lastProgress is not None, "its first micro-batch")
    eventually(lambda: app.story.slots.total == 2, "one executor is enough for it")
    loaded.touch()
    eventually(lambda: app.story.slots.total == 4, "its load brings another executor")
    app.check_alive()
    app.queries.pop("work").stop()


def test_the_journal_can_be_replayed(app: Application) -> None:
    app.feed.finish()
    app.check_journal()
