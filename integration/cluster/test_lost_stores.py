"""Tests that the next micro-batch does not wait for an executor that was lost with its state."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from integration.cluster.executors import Executors, with_executors
from integration.streaming.driver import PLUGIN, Driver
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.waiting import eventually
from spark_elastic_lab.demo.cluster import Cluster

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(240)]

PARTITIONS = 3


@pytest.fixture
def executors(master: Cluster, jvm: Driver) -> Iterator[Executors]:
    conf = {
        **PLUGIN,
        "spark.elastic.python": sys.executable,
        # The query stays as it is: the count is the user's.
        "spark.elastic.explicitParallelism": "fixed",
        "spark.sql.shuffle.partitions": str(PARTITIONS),
        # This long, Spark would reserve a task for the executor with its state; no test waits for that.
        "spark.locality.wait": "1h",
    }
    with with_executors(master, jvm, PARTITIONS, conf) as found:
        yield found


def test_its_state_is_opened_where_there_are_executors(
    executors: Executors, jvm: Driver, tmp_path: Path
) -> None:
    inbox = Inbox(tmp_path / "in")
    counted = executors.spark.readStream.schema(SCHEMA).json(str(inbox.folder)).groupBy("key").count()
    writer = counted.writeStream.outputMode("complete").format("memory").queryName("counted")
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()

    def locations() -> list[str]:
        """Return the executor of each partition's state, "" if Spark knows none."""
        state = jvm.jvm.org.apache.spark.sql.execution.streaming.state
        run = query._jsq.streamingQuery()
        coordinator = executors.spark._jsparkSession.streams().stateStoreCoordinator()
        found = []
        for partition in range(PARTITIONS):
            store = state.StateStoreId(f"{run.resolvedCheckpointRoot()}/state", 0, partition, "default")
            location = coordinator.getLocation(state.StateStoreProviderId(store, run.runId()))
            found.append(location.get().rpartition("_")[2] if location.isDefined() else "")
        return found

    def is_on(executors: set[str]) -> bool:
        return set(locations()) == executors

    try:
        inbox.put(3)
        query.processAllAvailable()
        # An executor reports its state independently of its tasks.
        eventually(lambda: sorted(locations()) == ["0", "1", "2"], "each has a part of the state")
        for left in ({"0", "1"}, {"0"}):
            executors.kill()
            eventually(partial(is_on, left), "the state that was lost has another place")
            inbox.put(3)
            query.processAllAvailable()
            eventually(partial(is_on, left), "the state is where it was opened")
        rows = executors.spark.table("counted").collect()
        assert {row["key"]: row["count"] for row in rows} == {k: n for k, (n, _) in inbox.totals().items()}
    finally:
        query.stop()
