"""The executors of an application on workers with one slot each."""

from __future__ import annotations

from attrs import define, field
from pyspark.sql import SparkSession

from integration.streaming.waiting import eventually
from spark_elastic.demo.cluster import Cluster, Worker


@define
class Executors:
    """What the application knows of its executors. Whoever has added workers removes them."""

    spark: SparkSession
    cluster: Cluster
    workers: list[Worker] = field(factory=list)
    _added: int = 0

    def add(self) -> None:
        """Add a worker, and wait for its executor, which has done nothing."""
        number = str(self._added)
        self._added += 1
        self.workers.append(self.cluster.start_worker(1))
        eventually(lambda: self.tasks().get(number) == 0, f"executor {number}")

    def kill(self) -> None:
        """Kill the last worker, and wait until its executor is known to be gone."""
        left = len(self.tasks()) - 1
        self.cluster.kill_worker(self.workers.pop())
        eventually(lambda: len(self.tasks()) == left, f"{left} executors")

    def remove_all(self) -> None:
        """Remove the workers that are left."""
        while self.workers:
            self.cluster.remove_worker(self.workers.pop())

    def tasks(self) -> dict[str, int]:
        """Return how many tasks each executor has ended."""
        found = self.spark.sparkContext._jsc.sc().statusStore().executorList(True)
        known = [found.apply(i) for i in range(found.size())]
        return {e.id(): e.completedTasks() for e in known if e.totalCores() > 0}
