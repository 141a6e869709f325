"""Tests of the installed command against real drivers: one in adaptive mode, one without the plugin."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from integration.streaming.command import spark_elastic
from integration.streaming.driver import Driver
from integration.streaming.http import Client
from integration.streaming.launch import AT_ONCE, WITH_PLUGIN
from integration.streaming.waiting import eventually
from spark_elastic.runtime.journal import journal_name

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

CONF = {
    **WITH_PLUGIN,
    "spark.ui.enabled": "true",
    "spark.elastic.schedulerMode": "adaptive",
    # Each query may use all slots: their lower bounds do not add up.
    "spark.elastic.query.counts.slotSharingGroup": "both",
    "spark.elastic.query.spread.slotSharingGroup": "both",
    "spark.elastic.adaptiveScheduler.rescalePolicy": "always",
    # The tests' folders are below this one.
    "spark.elastic.savepoint.allowedPrefixes": "/",
    **AT_ONCE,
}


@frozen
class Application:
    """Two queries in a driver, and a command line that gets its address from the environment."""

    spark: SparkSession
    journal: Path

    @property
    def url(self) -> str:
        assert self.spark.sparkContext.uiWebUrl is not None
        return self.spark.sparkContext.uiWebUrl

    def run(self, *arguments: str, expect: int = 0) -> str:
        """Return the command's standard output, or its standard error if it should fail."""
        result = spark_elastic(self.url, *arguments)
        assert result.returncode == expect, result.stdout + result.stderr
        return result.stderr if expect else result.stdout

    def shown(self, query: str) -> Any:
        return json.loads(self.run("status", query, "--json"))["queries"][0]

    def ran_with(self, query: str, partitions: int) -> bool:
        last = self.shown(query)["lastBatch"]
        return last is not None and last["partitions"] == partitions


def test_a_driver_without_the_plugin_is_none(jvm: Driver) -> None:
    with jvm.session({"spark.ui.enabled": "true"}) as spark:
        url = str(spark.sparkContext.uiWebUrl)
        result = spark_elastic(url, "status")
    assert result.returncode == 3
    assert "the application runs without the plugin" in result.stderr
    gone = spark_elastic(url, "status")
    assert gone.returncode == 3
    assert f"no driver at {url}" in gone.stderr


@pytest.fixture(scope="module")
def application(jvm: Driver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    folder = tmp_path_factory.mktemp("journal")
    with jvm.session({**CONF, "spark.elastic.journal.dir": str(folder)}) as spark:
        rows = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
        keyed = rows.withColumn("key", F.col("value") % 7)
        for name, query in {
            "spread": keyed.repartition("key").writeStream,
            "counts": keyed.groupBy("key").count().writeStream.outputMode("update"),
        }.items():
            named = query.format("noop").queryName(name)
            named.trigger(processingTime="300 milliseconds").start()
        found = Application(spark, folder / journal_name(spark.sparkContext.applicationId))
        eventually(lambda: found.ran_with("counts", 2) and found.ran_with("spread", 2), "both run with 2")
        yield found


def test_status_shows_the_application(application: Application) -> None:
    document = json.loads(application.run("status", "--json"))
    assert document["overview"]["application"]["name"] == "integration"
    assert document["overview"]["slots"]["now"] == 2
    assert sorted(query["name"] for query in document["queries"]) == ["counts", "spread"]
    assert "integration on Spark" in application.run("status")


def test_a_rescale_is_in_force_soon_and_explained(application: Application) -> None:
    for query in ("spread", "counts"):
        assert application.run("rescale", query, "--down").startswith(f"{query}: bounds 1–1, before 1–32768")
        eventually(partial(application.ran_with, query, 1), "it runs with one")
        application.run("rescale", query, "--up")
        eventually(partial(application.ran_with, query, 2), "it runs with two")

    def newest() -> tuple[str, str, int]:
        found = json.loads(application.run("history", "counts", "--json"))["rescales"][0]
        return found["cause"], found["status"], found["partitionsAfter"]

    eventually(lambda: newest() == ("update_requirement", "completed", 2), "the rescale has come to its end")
    told = application.run("explain", "counts")
    assert "why it was rescaled" in told
    assert "Scale 1 → 2 partitions on 2 slots" in told
    assert "what came of it: completed" in told


def test_sparks_metrics_system_has_the_metrics(application: Application) -> None:
    begin = f"{application.spark.sparkContext.applicationId}.driver.plugin."
    begin += "org.apache.spark.elastic.ElasticPlugin."

    def shown() -> dict[str, float]:
        gauges = Client(application.url).get("/metrics/json/").json["gauges"]
        return {name.removeprefix(begin): gauge["value"] for name, gauge in gauges.items() if begin in name}

    def told() -> dict[str, float]:
        """Return all output once it has the last rescale, which takes up to a second."""
        found = shown()
        counted = found.get("rescales_total.update_requirement.completed", 0) >= 3
        return found if counted and found.get("query_partitions.counts") == 2 else {}

    metrics = eventually(told, "the rescales are counted")
    assert metrics["slots"] == 2
    assert metrics["decision_seconds_count"] > 0
    assert metrics["paused_seconds_total.update_requirement"] > 0
    assert metrics["policy_restarts_total"] == 0


def test_a_journal_explains_as_its_driver_does(application: Application) -> None:
    told = application.run("explain", "counts")
    from_journal = application.run("explain", "counts", "--journal", str(application.journal))
    # The times of day and the sentences are equal; the relative times change with each event.
    assert [line.partition(", ")[0] for line in from_journal.splitlines()] == [
        line.partition(", ")[0] for line in told.splitlines()
    ]


def test_an_unknown_query_ends_with_5(application: Application) -> None:
    assert "did you mean 'counts'?" in application.run("explain", "conuts", expect=5)


def test_stop_with_savepoint_prints_where_it_is(application: Application, tmp_path: Path) -> None:
    taken = application.run("savepoint", "counts", str(tmp_path)).strip()
    path = Path(taken.removeprefix("file:"))
    assert (path / "offsets").is_dir()
    taken = application.run("stop", "counts", "--savepoint", str(tmp_path)).strip()
    path = Path(taken.removeprefix("file:"))
    assert path.parent == tmp_path
    assert (path / "offsets").is_dir()
    eventually(lambda: application.shown("counts")["state"] == "Finished", "it has ended")
    assert application.run("stop", "spread") == "spread has ended\n"
    assert application.spark.streams.active == []
