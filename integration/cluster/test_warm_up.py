"""Before a query is restarted, executors that have not worked yet read a part of its state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from integration.streaming.driver import Driver
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.state_store import REPARTITIONABLE
from integration.streaming.waiting import eventually
from spark_elastic.demo.cluster import Cluster, Worker

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


class Executors:
    """What a plain application, whose queries nobody restarts, knows of its executors."""

    def __init__(self, spark: SparkSession, jvm: Driver, master: Cluster) -> None:
        self.spark = spark
        self.workers: list[Worker] = []
        self._jvm = jvm
        self._master = master

    def add(self) -> None:
        """Add a worker with one slot, and wait for its executor, which has done nothing."""
        number = str(len(self.workers))
        self.workers.append(self._master.start_worker(1))
        eventually(lambda: self.tasks().get(number) == 0, f"executor {number}")

    def tasks(self) -> dict[str, int]:
        """Return how many tasks each executor has ended."""
        found = self.spark.sparkContext._jsc.sc().statusStore().executorList(True)
        known = [found.apply(i) for i in range(found.size())]
        return {e.id(): e.completedTasks() for e in known if e.totalCores() > 0}

    def warm_up(self, checkpoint: Path, most_ms: int) -> str:
        """Order it, and return what is said of it, "" if nothing."""
        since = len(self._jvm.said())
        warm_up = self._jvm.jvm.org.apache.spark.sql.elastic.WarmUp
        warm_up.apply(self.spark._jsparkSession, str(checkpoint), most_ms)
        return "".join(line for line in self._jvm.said()[since:] if "the new executors" in line)


@pytest.fixture
def executors(master: Cluster, jvm: Driver) -> Iterator[Executors]:
    conf = {
        **REPARTITIONABLE,
        "spark.master": master.master_url,
        "spark.executor.cores": "1",
        "spark.executor.memory": "640m",
        "spark.sql.shuffle.partitions": "2",
    }
    with jvm.session(conf) as spark:
        found = Executors(spark, jvm, master)
        found.add()
        yield found
    for worker in found.workers:
        master.remove_worker(worker)


def test_only_those_that_have_not_worked_read(executors: Executors, tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "in")
    inbox.put(2)
    checkpoint = tmp_path / "checkpoint"
    rows = executors.spark.readStream.schema(SCHEMA).json(str(inbox.folder))
    writer = rows.groupBy("key").count().writeStream.outputMode("update").format("noop")
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    state = executors.spark.read.format("statestore").load(str(checkpoint))
    expected = state.where("partition_id = 0").count()
    assert expected > 0

    assert executors.warm_up(checkpoint, 5_000) == ""
    executors.add()
    assert f"the new executors 1 read {expected} rows" in executors.warm_up(checkpoint, 30_000)
    eventually(lambda: executors.tasks()["1"] > 0, "it has worked")
    assert executors.warm_up(checkpoint, 5_000) == ""
    executors.add()
    assert "the new executors 2 were too slow" in executors.warm_up(checkpoint, 1)


def test_what_cannot_be_read_is_left(executors: Executors, tmp_path: Path) -> None:
    assert executors.warm_up(tmp_path / "nothing", 5_000) == ""
    assert executors.tasks() == {"0": 0}
