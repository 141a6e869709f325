"""Tests of executors that join while a query runs: they start with warm-up tasks that no query waits for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from integration.cluster.executors import Executors, with_executors
from integration.streaming.driver import Driver
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.launch import AT_ONCE, WITH_PLUGIN
from integration.streaming.state_store import REPARTITIONABLE
from integration.streaming.waiting import eventually
from spark_elastic_lab.demo.cluster import Cluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

Application = Callable[[Mapping[str, str]], AbstractContextManager[Executors]]


@pytest.fixture
def application(master: Cluster, jvm: Driver) -> Application:
    """Return a function that makes an application with one executor."""
    return partial(with_executors, master, jvm, 1)


@pytest.fixture
def inbox(tmp_path: Path) -> Inbox:
    """Write input before the query starts."""
    found = Inbox(tmp_path / "in")
    found.put(3)
    return found


class Said:
    """The log lines of the driver about warm-ups, starting now."""

    def __init__(self, jvm: Driver) -> None:
        self._jvm = jvm
        self._since = len(jvm.said())

    def lines(self) -> list[str]:
        found = (re.search(r"new executors .*", line) for line in self._jvm.said()[self._since :])
        return [match.group() for match in found if match]

    def rescaled(self) -> bool:
        """Return whether a query has been rescaled from one partition to two."""
        return any("Scaled 1 -> 2 partitions" in line for line in self._jvm.said()[self._since :])

    def next(self) -> str:
        eventually(self.lines, "a warm-up has ended")
        return self.lines()[0]


def rows_of(executors: Executors, inbox: Inbox) -> DataFrame:
    return executors.spark.readStream.schema(SCHEMA).json(str(inbox.folder))


def counted(executors: Executors, inbox: Inbox) -> DataFrame:
    return rows_of(executors, inbox).groupBy("key").count()


def start(rows: DataFrame, checkpoint: Path, mode: str) -> StreamingQuery:
    """Start a query, and return it when it has read all input."""
    writer = rows.writeStream.outputMode(mode).format("noop")
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    query.processAllAvailable()
    return query


@pytest.mark.slow
class TestAJob:
    """`WarmUp`, without the plugin."""

    @pytest.fixture
    def executors(self, application: Application) -> Iterator[Executors]:
        with application({**REPARTITIONABLE, "spark.sql.shuffle.partitions": "2"}) as found:
            yield found

    def warm_up(self, executors: Executors, jvm: Driver, checkpoint: Path) -> str:
        """Warm the last executor up, and return the log line about it."""
        said = Said(jvm)
        scala, spark = jvm.jvm.scala, jvm.jvm.org.apache.spark
        newest = spark.elastic.ExecutorInfo(max(executors.tasks()), "127.0.0.1", 1, False, False)
        spark.sql.elastic.WarmUp.apply(
            executors.spark._jsparkSession,
            scala.Option.apply(str(checkpoint)),
            scala.jdk.javaapi.CollectionConverters.asScala([newest]).toSeq(),
        )
        (line,) = said.lines()
        return line

    def test_runs_a_small_query_and_a_dry_run_on_the_new_executor_alone(
        self, executors: Executors, jvm: Driver, inbox: Inbox, tmp_path: Path
    ) -> None:
        checkpoint = tmp_path / "checkpoint"
        rows = rows_of(executors, inbox)
        start(rows.join(rows.withColumnRenamed("value", "other"), "key"), checkpoint, "append").stop()
        state = executors.spark.read.format("statestore").option("joinSide", "left").load(str(checkpoint))
        assert state.where("partition_id = 0").count() > 0
        executors.add()
        before = executors.tasks()
        assert before["1"] == 0
        files = set(checkpoint.rglob("*"))

        assert "new executors 1 are warm" in self.warm_up(executors, jvm, checkpoint)
        # Rows are made, then shuffled; then each of a join's four stores is written.
        eventually(lambda: executors.tasks() == {**before, "1": 2 + 4}, "it alone has worked")
        assert set(checkpoint.rglob("*")) == files

    def test_leaves_out_the_dry_run_if_a_partition_is_large(
        self, executors: Executors, jvm: Driver, inbox: Inbox, tmp_path: Path
    ) -> None:
        checkpoint = tmp_path / "checkpoint"
        start(counted(executors, inbox), checkpoint, "update").stop()
        with (checkpoint / "state" / "0" / "0" / "large").open("wb") as file:
            file.truncate(300 << 20)
        executors.add()
        before = executors.tasks()
        assert "new executors 1 are warm" in self.warm_up(executors, jvm, checkpoint)
        eventually(lambda: executors.tasks() == {**before, "1": 2}, "it has run the small query")

    def test_leaves_what_cannot_be_read(self, executors: Executors, jvm: Driver, tmp_path: Path) -> None:
        nothing = tmp_path / "nothing"
        nothing.touch()
        assert "new executors 0 were not warmed up: " in self.warm_up(executors, jvm, nothing)


class TestAnExecutorThatJoins:
    """The plugin's own warm-up."""

    def test_is_warmed_up_if_a_query_runs_and_a_rescale_waits_for_it(
        self, application: Application, jvm: Driver, inbox: Inbox, tmp_path: Path
    ) -> None:
        at_once = {
            **AT_ONCE,
            "spark.elastic.adaptiveScheduler.rescalePolicy": "always",
            "spark.elastic.warmUpTimeout": "1min",
        }
        said = Said(jvm)
        with application({**WITH_PLUGIN, **at_once}) as executors:
            query = start(rows_of(executors, inbox), tmp_path / "stateless", "append")
            assert said.lines() == []
            executors.add()
            assert said.next().startswith("new executors 1 are warm after ")
            query.stop()

            since = len(jvm.said())

            def place(text: str) -> int:
                """Return the number of lines before the one with this text, -1 if there is none yet."""
                return next((n for n, line in enumerate(jvm.said()[since:]) if text in line), -1)

            query = start(counted(executors, inbox), tmp_path / "stateful", "update")
            executors.add()
            eventually(lambda: place("Scaled 2 -> 3 partitions") > 0, "it has been rescaled")
            query.stop()
        ordered, warm = (
            place("Scale 2 -> 3 partitions on"),
            place("new executors 2 are warm"),
        )
        # The warm-up begins before the executor is reported to the policy, and may end before the order
        # comes.
        runs = place("Scaled 2 -> 3 partitions")
        assert 0 < ordered < runs
        assert 0 < warm < runs

    @pytest.mark.slow
    def test_is_left_cold_if_that_is_wanted(
        self, application: Application, jvm: Driver, inbox: Inbox, tmp_path: Path
    ) -> None:
        at_once = {**AT_ONCE, "spark.elastic.adaptiveScheduler.rescalePolicy": "always"}
        said = Said(jvm)
        with application({**WITH_PLUGIN, **at_once, "spark.elastic.warmUpTimeout": "0"}) as executors:
            query = start(counted(executors, inbox), tmp_path / "checkpoint", "update")
            executors.add()
            # With a warm-up, the rescale would have waited for it.
            eventually(said.rescaled, "it has been rescaled")
            inbox.put(3)
            query.processAllAvailable()
            assert said.lines() == []
            query.stop()
