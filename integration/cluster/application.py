"""An application on the cluster: its session, its queries, its input, and its journal."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
from attrs import define, field, frozen
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from integration.cluster.queries import Places, Start, compare
from integration.cluster.story import Story
from integration.streaming.driver import PLUGIN, Driver
from integration.streaming.waiting import eventually
from spark_elastic.runtime.journal import journal_name
from spark_elastic_lab.demo.cluster import SMALL_JVM, Cluster, Worker
from spark_elastic_lab.demo.data import Tables
from spark_elastic_lab.demo.plugin import demo_conf
from spark_elastic_lab.demo.source import Delivery, Feed
from spark_elastic_tools.tail import JournalTail

PART_INTERVAL_S = 1.0
# A count is in force after several restarts, one after the other on a machine with few cores.
IN_FORCE_S = 180.0
END_S = 120.0

DECLARED_AT_ONCE = {
    "spark.executor.cores": "2",
    "spark.elastic.schedulerMode": "adaptive",
    "spark.elastic.slotIdleTimeout": "1h",
    "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
    "spark.elastic.adaptiveScheduler.rescalePolicy": "always",
}
"""Settings with which declared bounds apply at once, and no executor is given back during a test."""


@frozen
class Source:
    """The folder of the input, by the name in the demonstration's application, and the feed that fills it."""

    incoming: str
    feed: Delivery


@define
class Application:
    """One running application, which leaves no worker to the next one."""

    cluster: Cluster
    spark: SparkSession
    places: Places
    journal: Path
    feed: Delivery
    _tail: JournalTail
    _closing: ExitStack
    queries: dict[str, StreamingQuery] = field(factory=dict)
    workers: list[Worker] = field(factory=list)
    _started: dict[str, Start] = field(factory=dict)
    _story: Story = field(factory=Story)

    @property
    def story(self) -> Story:
        """Return everything in the journal so far."""
        self._tail.pump(self._story)
        assert self._tail.error is None, self._tail.error
        return self._story

    def start(self, name: str, start: Start, spark: SparkSession | None = None) -> StreamingQuery:
        """Start a query, in the first session unless another one is given."""
        self.queries[name] = start(spark or self.spark, self.places, name)
        self._started[name] = start
        return self.queries[name]

    def have_workers(self, count: int, cores: int = 1) -> None:
        """Start or remove workers until there are this many, and the policy knows their slots."""
        while len(self.workers) > count:
            self.cluster.remove_worker(self.workers.pop())
        while len(self.workers) < count:
            self.workers.append(self.cluster.start_worker(cores))
        self.wait_for_slots(count * cores)

    def wait_for_slots(self, count: int) -> None:
        eventually(lambda: self.story.slots.total == count, f"{count} slots")

    def wait_in_force(self, partitions: int, names: Sequence[str], since: int) -> None:
        """Wait until each query has run a micro-batch with this many partitions that
        began at `since` or later.
        """

        def look() -> bool:
            self.check_alive()
            known = {query.name: query for query in self.story.queries.values()}
            return all(
                name in known and known[name].in_force_since(partitions, since) is not None for name in names
            )

        eventually(look, f"{partitions} partitions in force for {', '.join(names)}", timeout_s=IN_FORCE_S)

    def running_tasks(self, executor: str) -> int:
        """Return the number of tasks that an executor is running."""
        running = self.spark.sparkContext._jsc.sc().taskScheduler().runningTasksByExecutors()
        return int(running.apply(executor)) if running.contains(executor) else 0

    def check_alive(self) -> None:
        """Check that no query has failed or ended."""
        for name, query in self.queries.items():
            assert query.exception() is None, f"{name}: {query.exception()}"
            assert query.isActive, f"{name} has ended"

    def check_output(self) -> None:
        """End the input and wait until it is processed; each query must have the rows of a batch query."""
        self.feed.finish()
        for query in self.queries.values():
            query.processAllAvailable()
        self.check_alive()
        for query in self.queries.values():
            query.stop()
        for name, rows in compare(self.spark, self.places, self._started).items():
            assert rows["rows_expected"] > 0, name
            assert rows["missing"] == rows["surplus"] == 0, f"{name}: {rows}"

    def check_journal(self) -> None:
        """End the application and check that `spark-elastic replay` comes to the same decisions."""
        self.close()
        command = [sys.executable, "-m", "spark_elastic_tools.cli", "replay", str(self.journal)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=END_S, check=False)
        assert result.returncode == 0, result.stdout + result.stderr

    def close(self) -> None:
        """End the application; calling it again does nothing."""
        self._closing.close()


def now() -> int:
    """Return the time in epoch ms, as in the journal."""
    return time.time_ns() // 1_000_000


def executors(worker: Worker) -> dict[str, psutil.Process]:
    """Return the running executors that a worker has started, by id."""
    return executors_below(worker.process.pid)


def executors_below(pid: int) -> dict[str, psutil.Process]:
    """Return the running executors among a process's descendants, by id."""
    found: dict[str, psutil.Process] = {}
    # A child of an executor briefly has the executor's command line, so the oldest process counts.
    started = psutil.Process(pid).children(recursive=True)
    for child in sorted(started, key=psutil.Process.create_time):
        try:
            command = child.cmdline()
        except psutil.NoSuchProcess:
            continue
        # A container's first process has it, too.
        if "--executor-id" in command and Path(command[0]).name == "java":
            found.setdefault(command[command.index("--executor-id") + 1], child)
    return found


@contextmanager
def application(
    cluster: Cluster,
    jvm: Driver,
    tables: Tables,
    folder: Path,
    conf: Mapping[str, str],
    source: Source | None = None,
) -> Iterator[Application]:
    """Run an application with the plugin; `conf` overrides its other settings.

    Its input arrives as files unless another `source` is given.
    """
    settings = {
        "spark.master": cluster.master_url,
        "spark.executor.memory": "640m",
        "spark.executor.extraJavaOptions": SMALL_JVM,
        "spark.decommission.enabled": "true",
        "spark.ui.showConsoleProgress": "false",
        **demo_conf(folder / "journal"),
        "spark.elastic.startTimeout": PLUGIN["spark.elastic.startTimeout"],
        "spark.elastic.adaptiveScheduler.executing.cooldownAfterRescaling": "1s",
        "spark.elastic.adaptiveScheduler.executing.resourceStabilizationTimeout": "500ms",
        **conf,
    }
    if source is None:
        incoming = folder / "incoming"
        source = Source(str(incoming), Feed(tables.lineitem, incoming, interval_s=PART_INTERVAL_S))
    places = Places(incoming=source.incoming, orders=tables.orders, output=folder / "output")
    with ExitStack() as closing:
        spark = closing.enter_context(jvm.session(settings))
        journal = folder / "journal" / journal_name(spark.sparkContext.applicationId)
        tail = JournalTail(journal)
        closing.callback(tail.stop)
        closing.callback(source.feed.stop)
        running = Application(cluster, spark, places, journal, source.feed, tail, closing)
        try:
            yield running
        finally:
            running.close()
            for worker in running.workers:
                cluster.remove_worker(worker)
