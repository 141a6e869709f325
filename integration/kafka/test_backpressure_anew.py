"""Tests that stored measurements limit the first micro-batch after an outage of the driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.kafka.flooded import CONF, TOPIC, Flooded
from integration.kafka.token_provider import kafka_jars
from integration.streaming.driver import driver
from integration.streaming.waiting import eventually
from spark_elastic_lab.demo.broker import Broker

__all__ = ["TOPIC"]  # the module's, for the broker
pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(400)]


def test_what_came_while_there_was_no_driver_is_read_in_several_micro_batches(
    broker: Broker, tmp_path: Path
) -> None:
    with driver(tmp_path / "driver", kafka_jars()) as jvm:
        with jvm.session(CONF) as spark:
            before = Flooded(spark, broker, tmp_path, "flooded")
            before.learn()
            limit = eventually(lambda: before.policy()["mostRows"], "its micro-batches are limited")
            kept = tmp_path / "checkpoint" / "_elastic" / "batches"
            eventually(kept.exists, "what they take is kept")
            before.query.stop()
            before.put(4 * limit)
        with jvm.session(CONF) as spark:
            after = Flooded(spark, broker, tmp_path, "flooded", sent=before.sent)
            after.query.processAllAvailable()
            read = [progress.numInputRows for progress in after.query.recentProgress if progress.numInputRows]
            assert sum(read) == 4 * limit
            # The stored measurements are slightly older than the last ones.
            assert read[0] <= 2 * limit, read
            assert "batches_recalled" in after.decisions()
            after.check_rows()
            after.query.stop()
