"""Executors that join while a query runs begin with tasks that nobody waits for."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from integration.cluster.executors import Executors, with_executors
from integration.streaming.driver import PLUGIN, Driver
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.state_store import REPARTITIONABLE
from integration.streaming.waiting import eventually
from spark_elastic.demo.cluster import Cluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

Application = Callable[[Mapping[str, str]], AbstractContextManager[Executors]]
WITH_PLUGIN = {**PLUGIN, "spark.elastic.python": sys.executable}


@pytest.fixture
def application(master: Cluster, jvm: Driver) -> Application:
    """Give what makes an application with one executor."""
    return partial(with_executors, master, jvm, 1)


class Said:
    """What the driver's log says of warm-ups from now on."""

    def __init__(self, jvm: Driver) -> None:
        self._jvm = jvm
        self._since = len(jvm.said())

    def lines(self) -> list[str]:
        found = (re.search(r"the new executors .*", line) for line in self._jvm.said()[self._since :])
        return [match.group() for match in found if match]

    def next(self) -> str:
        eventually(self.lines, "a warm-up has ended")
        return self.lines()[0]


def counted(executors: Executors, inbox: Inbox) -> DataFrame:
    return executors.spark.readStream.schema(SCHEMA).json(str(inbox.folder)).groupBy("key").count()


def start(rows: DataFrame, checkpoint: Path, mode: str) -> StreamingQuery:
    writer = rows.writeStream.outputMode(mode).format("noop")
    return writer.option("checkpointLocation", str(checkpoint)).start()


class TestAJob:
    """`WarmUp`, without the plugin."""

    @pytest.fixture
    def executors(self, application: Application) -> Iterator[Executors]:
        with application({**REPARTITIONABLE, "spark.sql.shuffle.partitions": "2"}) as found:
            yield found

    def warm_up(self, executors: Executors, jvm: Driver, checkpoint: Path | None, most_ms: int) -> str:
        """Warm the last executor up, and return what is said of it."""
        said = Said(jvm)
        scala, elastic = jvm.jvm.scala, jvm.jvm.org.apache.spark
        number = max(executors.tasks())
        newest = elastic.elastic.ExecutorFacts(number, "127.0.0.1", 1, False, False)
        elastic.sql.elastic.WarmUp.apply(
            executors.spark._jsparkSession,
            scala.Option.apply(None if checkpoint is None else str(checkpoint)),
            scala.jdk.javaapi.CollectionConverters.asScala([newest]).toSeq(),
            most_ms,
        )
        (line,) = said.lines()
        return line

    def test_runs_a_small_query_and_reads_a_part_of_the_state_on_the_new_executor(
        self, executors: Executors, jvm: Driver, tmp_path: Path
    ) -> None:
        inbox = Inbox(tmp_path / "in")
        inbox.put(2)
        checkpoint = tmp_path / "checkpoint"
        query = start(counted(executors, inbox), checkpoint, "update")
        query.processAllAvailable()
        query.stop()
        state = executors.spark.read.format("statestore").load(str(checkpoint))
        rows = state.where("partition_id = 0").count()
        assert rows > 0
        executors.add()
        before = executors.tasks()
        assert before["1"] == 0

        assert f"the new executors 1 were warmed up with {1 + rows} rows" in self.warm_up(
            executors, jvm, checkpoint, 30_000
        )
        # Rows are made, then shuffled, then the state is read.
        eventually(lambda: executors.tasks() == {**before, "1": 3}, "it alone has worked")
        assert "the new executors 1 were too slow to be warmed up" in self.warm_up(executors, jvm, checkpoint, 1)

    def test_leaves_what_cannot_be_read(self, executors: Executors, jvm: Driver, tmp_path: Path) -> None:
        assert "the new executors 0 were" in self.warm_up(executors, jvm, tmp_path / "nothing", 30_000)


class TestAnExecutorThatJoins:
    """What the plugin does."""

    @pytest.mark.parametrize(("mode", "rows"), [("append", 1), ("update", 8)], ids=["stateless", "stateful"])
    def test_is_warmed_up_while_a_query_runs(
        self, application: Application, jvm: Driver, tmp_path: Path, mode: str, rows: int
    ) -> None:
        inbox = Inbox(tmp_path / "in")
        inbox.put(3)
        said = Said(jvm)
        with application(WITH_PLUGIN) as executors:
            stream = executors.spark.readStream.schema(SCHEMA).json(str(inbox.folder))
            read = counted(executors, inbox) if mode == "update" else stream
            query = start(read, tmp_path / "checkpoint", mode)
            query.processAllAvailable()
            assert said.lines() == []
            executors.add()
            assert said.next().startswith(f"the new executors 1 were warmed up with {rows} rows")
            query.stop()

    def test_is_left_cold_where_nothing_runs(
        self, application: Application, jvm: Driver, tmp_path: Path
    ) -> None:
        inbox = Inbox(tmp_path / "in")
        inbox.put(3)
        said = Said(jvm)
        with application(WITH_PLUGIN) as executors:
            query = start(counted(executors, inbox), tmp_path / "checkpoint", "update")
            query.processAllAvailable()
            query.stop()
            executors.add()
            executors.spark.range(10).count()
            assert said.lines() == []

    def test_is_left_cold_if_that_is_wanted(
        self, application: Application, jvm: Driver, tmp_path: Path
    ) -> None:
        inbox = Inbox(tmp_path / "in")
        inbox.put(3)
        said = Said(jvm)
        with application({**WITH_PLUGIN, "spark.elastic.warmUpTimeout": "0"}) as executors:
            query = start(counted(executors, inbox), tmp_path / "checkpoint", "update")
            query.processAllAvailable()
            executors.add()
            inbox.put(3)
            query.processAllAvailable()
            assert said.lines() == []
            query.stop()
