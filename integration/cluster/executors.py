"""The executors of an application on workers with one slot each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from attrs import define, field
from pyspark.sql import SparkSession

from integration.streaming.driver import Driver
from integration.streaming.waiting import eventually
from spark_elastic_lab.demo.cluster import Cluster, Worker


@define
class Executors:
    """The executors that the application knows."""

    spark: SparkSession
    cluster: Cluster
    workers: list[Worker] = field(factory=list)
    _added: int = 0

    def add(self) -> None:
        """Add a worker, and wait for its executor."""
        number = str(self._added)
        self._added += 1
        self.workers.append(self.cluster.start_worker(1))
        eventually(lambda: number in self.tasks(), f"executor {number}")

    def kill(self) -> None:
        """Kill the last worker, and wait until the loss of its executor is known."""
        left = len(self.tasks()) - 1
        self.cluster.kill_worker(self.workers.pop())
        eventually(lambda: len(self.tasks()) == left, f"{left} executors")

    def tasks(self) -> dict[str, int]:
        """Return the number of tasks that each executor has ended."""
        found = self.spark.sparkContext._jsc.sc().statusStore().executorList(True)
        known = [found.apply(i) for i in range(found.size())]
        return {e.id(): e.completedTasks() for e in known if e.totalCores() > 0}


@contextmanager
def with_executors(master: Cluster, jvm: Driver, count: int, conf: Mapping[str, str]) -> Iterator[Executors]:
    """Start an application with this many executors; its workers end with the block."""
    settings = {
        "spark.master": master.master_url,
        "spark.executor.cores": "1",
        "spark.executor.memory": "640m",
        **conf,
    }
    with jvm.session(settings) as spark:
        found = Executors(spark, master)
        try:
            for _ in range(count):
                found.add()
            yield found
        finally:
            for worker in found.workers:
                master.remove_worker(worker)
