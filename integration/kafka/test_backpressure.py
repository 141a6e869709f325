"""Tests that a backlog in Kafka is read in micro-batches that last about one trigger interval."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from integration.kafka.flooded import CONF, TOPIC, Flooded
from integration.kafka.token_provider import kafka_jars
from integration.streaming.driver import driver
from integration.streaming.waiting import eventually
from spark_elastic_lab.demo.broker import Broker

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(400)]

__all__ = ["TOPIC"]  # the module's, for the broker
FLOOD = 3_000


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("backpressure") / "driver"
    with (
        driver(folder, kafka_jars()) as jvm,
        jvm.session({**CONF, "spark.elastic.query.free.autoscale.backpressure": "false"}) as running,
    ):
        yield running


@pytest.fixture
def started() -> Iterator[list[Flooded]]:
    queries: list[Flooded] = []
    yield queries
    for query in queries:
        query.query.stop()


def test_what_comes_at_once_is_read_in_several_micro_batches(
    spark: SparkSession, broker: Broker, tmp_path: Path, started: list[Flooded]
) -> None:
    flooded = Flooded(spark, broker, tmp_path, "flooded")
    started.append(flooded)
    flooded.learn()
    limit = eventually(lambda: flooded.policy()["mostRows"], "its micro-batches are limited")
    read = flooded.flood(3 * limit)
    assert sum(read) == 3 * limit
    # The limit follows the duration of micro-batches, so it may have changed.
    assert max(read) <= 2 * limit, read
    assert "autoscale_backpressure" in flooded.decisions()
    flooded.check_rows()


def test_a_limit_of_the_user_stays(
    spark: SparkSession, broker: Broker, tmp_path: Path, started: list[Flooded]
) -> None:
    own = Flooded(spark, broker, tmp_path, "own", maxOffsetsPerTrigger=str(FLOOD))
    started.append(own)
    own.learn()
    read = own.flood(2 * FLOOD)
    assert max(read) == FLOOD, read
    assert own.policy()["mostRows"] is None
    own.check_rows()


def test_without_backpressure_all_of_it_is_read_at_once(
    spark: SparkSession, broker: Broker, tmp_path: Path, started: list[Flooded]
) -> None:
    free = Flooded(spark, broker, tmp_path, "free")
    started.append(free)
    free.learn()
    assert max(free.flood(2 * FLOOD)) > FLOOD
    assert free.policy()["mostRows"] is None
    free.check_rows()
