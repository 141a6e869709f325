"""Tests of the metrics of a real query: its load while it reads, and that it is idle afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from integration.streaming.driver import Driver
from integration.streaming.files import Inbox
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.scrape import metric
from integration.streaming.waiting import eventually
from integration.streaming.world import stream

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

TRIGGER_S = 2.0
LATE_S = 100.0


@pytest.fixture
def spark(jvm: Driver) -> Iterator[SparkSession]:
    conf = {
        **WITH_PLUGIN,
        "spark.ui.enabled": "true",
        "spark.elastic.scheduler-mode": "reactive",
        "spark.sql.streaming.noDataProgressEventInterval": "1s",
    }
    with jvm.session(conf) as running:
        yield running


@pytest.fixture
def query(spark: SparkSession, inbox: Inbox) -> Iterator[StreamingQuery]:
    """Start a query whose rows are all equally late."""
    late = F.expr(f"current_timestamp() - make_interval(0, 0, 0, 0, 0, 0, {LATE_S})")
    rows = stream(spark, inbox).withColumn("at", late).withWatermark("at", "1 hour").repartition("key")
    running = (
        rows.writeStream.queryName("late")
        .format("noop")
        .trigger(processingTime=f"{TRIGGER_S:g} seconds")
        .start()
    )
    yield running
    running.stop()


def test_a_query_that_reads_has_a_load_and_one_with_nothing_to_read_is_idle(
    spark: SparkSession, query: StreamingQuery, inbox: Inbox
) -> None:
    url = spark.sparkContext.uiWebUrl
    assert url is not None

    def of_the_query(name: str) -> float | None:
        return metric(url, f"query_{name}", query=str(query.id))

    for _ in range(2):
        inbox.put()
        query.processAllAvailable()

    def under_load() -> tuple[float, float] | None:
        """Let it read, and return the lag of its rows and its desired slots; soon it is idle again."""
        inbox.put()
        lag, slots = of_the_query("event_time_lag_seconds"), of_the_query("desired_slots")
        has_load = (of_the_query("load_ratio") or 0) > 0
        return (lag, slots) if has_load and lag is not None and slots is not None else None

    found = eventually(under_load, "load and lag are known", every_s=TRIGGER_S)
    assert found is not None
    lag, _ = found
    assert of_the_query("trigger_interval_seconds") == TRIGGER_S
    # A micro-batch is timed by its trigger, or a little later.
    assert LATE_S - TRIGGER_S < lag <= LATE_S + TRIGGER_S
    # The source of files does not report its backlog.
    assert of_the_query("backlog_records") is None

    eventually(lambda: of_the_query("load_ratio") == 0, "it is idle")
    assert of_the_query("input_rows_per_second") == 0
    assert metric(url, "desired_slots") == 1
    assert metric(url, "busy_ratio") == 0
