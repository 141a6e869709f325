"""Tests of the driver's log: the query, the level and the logger of each line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from integration.streaming.driver import Driver
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.http import Client
from integration.streaming.launch import AT_ONCE, WITH_PLUGIN
from integration.streaming.waiting import eventually
from spark_elastic import __version__

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

LINE = re.compile(r"[\d:.]+ (?P<level>[A-Z]+) (?P<logger>\S+) \[.*?\]: (?P<said>.*)")


class Log:
    """The driver's log from this moment on, as far as it consists of whole log4j lines."""

    def __init__(self, jvm: Driver) -> None:
        self._jvm = jvm
        self._since = len(jvm.said())

    def lines(self) -> list[str]:
        return self._jvm.said()[self._since :]

    def entries(self) -> Iterator[tuple[str, str, str]]:
        """Return level, logger and message of each line."""
        yield from (match.groups() for line in self.lines() if (match := LINE.match(line)))  # type: ignore[misc]

    def ours(self) -> list[tuple[str, str]]:
        """Return level and message of the plugin's own lines."""
        begin = "spark-elastic: "
        return [
            (level, said.removeprefix(begin)) for level, _, said in self.entries() if said.startswith(begin)
        ]


class Ill:
    """A sink that fails twice with a very long message, and is slow then."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, batch: DataFrame, _: int) -> None:
        self.seen += 1
        if self.seen <= 2:
            raise ValueError(f"the sink is {'very ' * self.seen}ill\n" + "and so on " * 500)
        batch.select(F.expr("reflect('java.lang.Thread', 'sleep', 200L)")).collect()


def start(spark: SparkSession, inbox: Inbox, sink: Ill, checkpoint: Path, name: str | None) -> Any:
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(inbox.folder))
    writer = rows.groupBy("key").count().writeStream.outputMode("update").foreachBatch(sink)
    writer = writer.trigger(processingTime="50 milliseconds").option("checkpointLocation", str(checkpoint))
    return (writer if name is None else writer.queryName(name)).start()


def test_a_line_names_its_query_and_a_failure_is_a_warning(jvm: Driver, inbox: Inbox, tmp_path: Path) -> None:
    refused = tmp_path / "policy.yaml"
    refused.write_text("queris: {}\n")
    conf = {
        **WITH_PLUGIN,
        **AT_ONCE,
        "spark.ui.enabled": "true",
        "spark.sql.shuffle.partitions": "2",
        "spark.elastic.schedulerMode": "adaptive",
        "spark.elastic.policyFile": str(refused),
        "spark.elastic.restartStrategy.type": "fixed-delay",
        "spark.elastic.restartStrategy.fixedDelay.attempts": "9",
        "spark.elastic.restartStrategy.fixedDelay.delay": "10ms",
    }
    inbox.put(3)
    log = Log(jvm)
    with jvm.session(conf) as spark:
        named = start(spark, inbox, Ill(), tmp_path / "named", "counts")
        unnamed = start(spark, inbox, Ill(), tmp_path / "unnamed", None)
        for query in (named, unnamed):
            query.processAllAvailable()
            query.stop()
        ui = spark.sparkContext.uiWebUrl
        client = Client(ui or "", "/elastic/api/v1")
        decisions = client.get("/decisions?limit=1000").json["decisions"]
        said = {str(query.id): query.name or str(query.id) for query in (named, unnamed)}

        def missing() -> list[tuple[str, str]]:
            wanted = [
                (
                    "WARN" if decision["kind"] == "failed" else "INFO",
                    (f"query {said[decision['query']]}: " if decision["query"] else "")
                    + decision["message"].replace("→", "->").replace("×", "x"),
                )
                for decision in decisions
            ]
            ours = log.ours()
            return [line for line in wanted if line not in ours]

        eventually(lambda: not missing(), f"all decisions are in the log: {missing()}")
        assert {decision["name"] for decision in decisions if decision["query"] == named.id} == {"counts"}
    on = [(level, line) for level, line in log.ours() if " on, mode " in line]
    assert on == [("INFO", f"version {__version__} on, mode adaptive, its tab is {ui}/elastic/")]
    warned = [line for level, line in log.ours() if level == "WARN"]
    assert [line for line in warned if line.startswith(f"Policy file {refused} rejected")]
    for name in said.values():
        failed = "Failed, restarting in 10 ms: ValueError: the sink is"
        assert [line for line in warned if failed in line] != []
        # Spark did not see the exception, so we log its trace, once, and without secrets.
        retried = f"query {name}: retrying a failed micro-batch"
        assert warned.count(retried) == 1
        assert [line for line in warned if line.startswith(f"query {name}: ") and line != retried] == [
            f"query {name}: {failed} very ill",
            f"query {name}: {failed} very very ill",
        ]
    assert re.search(r"^(Caused by: )?py4j\.Py4JException\n\tat py4j\.", "\n".join(log.lines()), re.MULTILINE)
    # Alerts match the name of Spark's class.
    behind = {(level, logger) for level, logger, line in log.entries() if "is falling behind" in line}
    assert behind == {("WARN", "ProcessingTimeExecutor")}
    assert not [logger for _, logger, _ in log.entries() if "$anon" in logger]


def test_of_a_long_error_stays_what_python_has_raised(jvm: Driver) -> None:
    trace = (
        "Traceback (most recent call last):\n" + '  File "/app/sink.py", line 7, in sink\n    write()\n' * 40
    )
    java = "\tat org.apache.spark.sql.execution.Exchange.doExecute(Exchange.scala:1)\n" * 60
    facts = jvm.jvm.org.apache.spark.sql.elastic.FailureFacts

    def kept(said: str) -> str:
        return str(facts.text(jvm.jvm.java.lang.RuntimeException(said)))

    assert kept("short\n" + trace[:500]) == "short\n" + trace[:500]
    # In the middle, at the end, and longer than the kept text.
    for raised in ("ValueError: the sink is ill", "ValueError: " + "ill " * 1_000):
        for text in (f"Return Message: {trace}{raised}\n\n{java}", f"Return Message: {trace}{raised}"):
            found = kept(text)
            assert "\nValueError: the sink is ill\n" in f"{found}\n" or "\nValueError: ill ill ill" in found
            assert found.startswith("Return Message: Traceback")
            assert len(found) <= 2_010
    assert kept("begin " + java + "the end").endswith("the end")


def test_without_a_ui_the_line_says_that_there_is_no_api(jvm: Driver) -> None:
    log = Log(jvm)
    conf = {**WITH_PLUGIN, "spark.elastic.adviseOnly": "true"}
    with jvm.session(conf):
        eventually(lambda: [line for _, line in log.ours() if " on, mode " in line], "it says that it is on")
    assert [line for _, line in log.ours() if "REST API" in line] == [
        f"version {__version__} on, mode reactive, advice only, "
        "without a REST API, since this application has no UI (spark.ui.enabled is false)"
    ]
