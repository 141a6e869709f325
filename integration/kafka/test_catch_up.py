"""Tests that `autoscale.catchUp` sets how soon a backlog is cleared: as many slots as that takes, no more."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from integration.kafka.flooded import CONF, TOPIC, Flooded
from integration.kafka.token_provider import kafka_jars
from integration.streaming.driver import driver
from integration.streaming.waiting import eventually
from spark_elastic_lab.demo.broker import Broker

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(400)]

__all__ = ["TOPIC"]  # the module's, for the broker
FLOOD = 20_000
"""Rows that take one slot 80 s."""
SLOTS = 2
"""The slots of the only executor: more are wanted and not granted, so that nothing else differs."""
INTERVAL_S = 3
"""Long compared with the part of a micro-batch that more slots do not shorten, even on a busy machine."""
SOON_MS, USUAL_MS = 10_000, 600_000
READY_MS = 30_000
"""The assumed start-up time of an executor, before one has been measured."""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("catch_up") / "driver"
    conf = {**CONF, "spark.elastic.query.eager.autoscale.catchUp": f"{SOON_MS}ms"}
    with driver(folder, kafka_jars()) as jvm, jvm.session(conf) as running:
        yield running


@pytest.fixture
def queries(spark: SparkSession, broker: Broker, tmp_path: Path) -> Iterator[list[Flooded]]:
    """Start the eager query and the patient one, over the same topic."""
    started = [
        Flooded(spark, broker, tmp_path / name, name, interval_s=INTERVAL_S) for name in ("eager", "patient")
    ]
    yield started
    for one in started:
        one.query.stop()


def plan_of(query: Flooded) -> Any:
    """Return the policy's plan for a query once it sees that most of the flood waits."""

    def waits() -> Any:
        plan = query.policy()
        return plan if (plan["backlog"] or {"rows": 0})["rows"] > FLOOD / 2 else None

    return eventually(waits, "what has piled up is seen")


def keeps_busy(plan: Any, *, comes_in: bool) -> float:
    """Return the number of busy slots that clear the backlog of a plan in time.

    With `comes_in`, arriving rows count as well, and so does the backlog that grows until executors are up.
    """
    rows, rows_per_ms, backlog = 0.0, 0.0, plan["backlog"]
    if comes_in:
        rows_per_ms = plan["rowsPerSecond"] / 1_000
        rows = rows_per_ms * READY_MS
    rows_per_ms += (rows + backlog["rows"]) / backlog["withinMs"]
    return float(rows_per_ms * plan["model"]["rowUs"] / 1_000)


def test_a_backlog_gets_the_slots_that_make_it_go_in_time_and_no_more(queries: list[Flooded]) -> None:
    for one in queries:
        one.learn()
    queries[0].put(FLOOD)
    eager, patient = map(plan_of, queries)
    assert eager["backlog"]["withinMs"] == SOON_MS
    assert eager["reason"] == "autoscale_up_backlog"
    # Executors are whole.
    most = math.ceil(keeps_busy(eager, comes_in=True)) + SLOTS - 1
    assert SLOTS < keeps_busy(eager, comes_in=False) <= eager["wantedSlots"] <= most

    assert patient["backlog"]["withinMs"] == USUAL_MS
    assert keeps_busy(patient, comes_in=False) < 1
    assert patient["wantedSlots"] <= math.ceil(keeps_busy(patient, comes_in=True)) + SLOTS
    assert patient["wantedSlots"] < eager["wantedSlots"] / 2
