"""Tests that a flood gets more slots while its first micro-batch runs, not after its commit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from integration.kafka.flooded import CONF, TOPIC, Flooded
from integration.kafka.token_provider import kafka_jars
from integration.streaming.driver import driver
from integration.streaming.waiting import eventually
from spark_elastic.core.events import BatchPlanned, QueryProgress
from spark_elastic.runtime.entries import EventEntry, read_journal
from spark_elastic.runtime.journal import journal_name
from spark_elastic_lab.demo.broker import Broker

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(400)]

__all__ = ["TOPIC"]  # the module's, for the broker
FLOOD = 20_000
"""Rows that take the two slots 40 s."""
SLOTS = 2
INTERVAL_S = 3


@pytest.fixture
def journals(tmp_path: Path) -> Path:
    return tmp_path / "journals"


@pytest.fixture
def spark(tmp_path: Path, journals: Path) -> Iterator[SparkSession]:
    conf = {
        **CONF,
        "spark.elastic.query.free.autoscale.backpressure": "false",
        "spark.elastic.journal.dir": str(journals),
    }
    with driver(tmp_path / "driver", kafka_jars()) as jvm, jvm.session(conf) as running:
        yield running


def test_a_flood_is_known_as_its_first_batch_begins(
    spark: SparkSession, broker: Broker, tmp_path: Path, journals: Path
) -> None:
    free = Flooded(spark, broker, tmp_path / "free", "free", interval_s=INTERVAL_S)
    try:
        free.learn()
        calm = free.sent
        free.put(FLOOD)
        eventually(lambda: free.policy()["wantedSlots"] > 2 * SLOTS, "more slots are wanted")
        committed = sum(progress.numInputRows for progress in free.query.recentProgress)
        assert committed < calm + FLOOD / 2, "the batch with the flood was committed before"
        free.query.processAllAvailable()
        free.check_rows()
    finally:
        free.query.stop()
    journal = journals / journal_name(str(spark.sparkContext.applicationId))
    events = [entry.event for _, entry in read_journal(journal) if isinstance(entry, EventEntry)]
    planned = {event.batch: event for event in events if isinstance(event, BatchPlanned) and event.input_rows}
    read = {event.batch: event for event in events if isinstance(event, QueryProgress) and event.input_rows}
    assert planned.keys() == read.keys()
    assert {batch: event.input_rows for batch, event in planned.items()} == {
        batch: event.input_rows for batch, event in read.items()
    }
    assert {event.records_behind for event in planned.values()} == {0}
