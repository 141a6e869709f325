"""Tests of a query without a shuffle: its sources follow the slots, or the reason why not is reported."""

from __future__ import annotations

import gzip
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from integration.cluster.executors import Executors, with_executors
from integration.streaming.driver import PLUGIN, Driver
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.http import Client
from integration.streaming.waiting import eventually
from spark_elastic.core.load.reading import BATCHES
from spark_elastic_lab.demo.cluster import Cluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

# One file of this many rows has about 6 MB, which Spark reads in two tasks: opening a file counts as 4 MB.
ROWS = 230_000


@pytest.fixture
def executors(master: Cluster, jvm: Driver) -> Iterator[Executors]:
    conf = {**PLUGIN, "spark.elastic.python": sys.executable, "spark.ui.enabled": "true"}
    with with_executors(master, jvm, 1, conf) as found:
        yield found


def api(executors: Executors) -> Client:
    url = executors.spark.sparkContext.uiWebUrl
    assert url is not None
    return Client(url, "/elastic/api/v1")


def shown(executors: Executors, query: StreamingQuery) -> tuple[Any, list[str]]:
    """Return the query as the API shows it, and the reasons of its decisions, oldest first."""
    told = api(executors)
    decisions = told.get(f"/decisions?query={query.id}").json["decisions"]
    return told.get(f"/queries/{query.id}").json, [decision["reason"] for decision in reversed(decisions)]


def wait_until_known(executors: Executors, query: StreamingQuery) -> Any:
    """Return the last micro-batch that has read something, as the API shows it once the policy knows it."""
    last = [p for p in query.recentProgress if p["numInputRows"]][-1]["batchId"]

    def look() -> Any:
        known = shown(executors, query)[0].get("lastBatch")
        return known if known and known["batch"] == last else None

    return eventually(look, "the policy knows it")


def newest_rescale(executors: Executors, query: StreamingQuery) -> Any:
    return api(executors).get(f"/queries/{query.id}/rescales").json["rescales"][0]


def warm(jvm: Driver, since: int) -> set[str]:
    """Return the executors that have been warmed up, according to the driver's log from a line on."""
    found = (re.search(r"new executors (.*) are warm", line) for line in jvm.said()[since:])
    return {executor for match in found if match for executor in match.group(1).split(", ")}


def test_files_are_read_on_all_executors(executors: Executors, jvm: Driver, tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "in")
    rows = executors.spark.readStream.schema(SCHEMA).json(str(inbox.folder))
    out = rows.withColumn("task", F.spark_partition_id()).writeStream.format("parquet").queryName("copy")
    query = out.option("checkpointLocation", str(tmp_path / "checkpoint")).start(str(tmp_path / "out"))

    def read_in() -> int:
        """Return the number of tasks that read another file."""
        inbox.put(rows=ROWS)
        query.processAllAvailable()
        (source,) = wait_until_known(executors, query)["sources"]
        return int(source["tasks"])

    try:
        assert [read_in() for _ in range(BATCHES)] == [2] * BATCHES
        eventually(lambda: "sources_follow" in shown(executors, query)[1], "it is seen to have no shuffle")
        assert read_in() == 2
        since = len(jvm.said())
        executors.add()
        executors.add()
        said = ["sources_follow"] * 3
        eventually(lambda: shown(executors, query)[1][-3:] == said, "its sources follow the slots")
        # After these reports a micro-batch may still run between two jobs of the warm-up.
        eventually(lambda: warm(jvm, since) == {"1", "2"}, "both are warm")
        assert newest_rescale(executors, query)["executorsUsed"] is None
        before = executors.tasks()
        assert read_in() == 3
        eventually(
            lambda: all(done > before[executor] for executor, done in executors.tasks().items()),
            "each has done a part",
        )
        eventually(lambda: newest_rescale(executors, query)["executorsUsed"], "the new ones are in use")
        record = newest_rescale(executors, query)
        assert record["started"] < record["executorsUsed"]
        assert record["warmUpMs"] > 0
        executors.kill()
        eventually(lambda: shown(executors, query)[1][-4:] == [*said, "sources_follow"], "also when they go")
        assert read_in() == 2
        written = (
            executors.spark.read.parquet(str(tmp_path / "out")).select(F.sum("value"), F.count("*")).first()
        )
        assert written is not None
        assert tuple(written) == (sum(inbox.values()), inbox.rows)
    finally:
        query.stop()


@pytest.mark.slow
def test_files_that_cannot_be_split_are_named_once(executors: Executors, tmp_path: Path) -> None:
    inbox = tmp_path / "in"
    inbox.mkdir()
    rows = executors.spark.readStream.text(str(inbox)).writeStream.format("noop").queryName("packed")
    query = rows.option("checkpointLocation", str(tmp_path / "checkpoint")).start()

    def read_in(number: int) -> int:
        """Return the number of tasks that read another file of about 3 MiB."""
        hidden = inbox / f".{number}"
        # Random bytes compress to half of their hexadecimal digits.
        hidden.write_bytes(gzip.compress("\n".join(os.urandom(50).hex() for _ in range(60_000)).encode(), 1))
        hidden.rename(inbox / f"{number}.gz")
        query.processAllAvailable()
        return int(wait_until_known(executors, query)["sources"][0]["tasks"])

    try:
        assert [read_in(number) for number in range(BATCHES)] == [1] * BATCHES
        executors.add()
        eventually(
            lambda: shown(executors, query)[1][-2:] == ["sources_follow"] * 2, "its source follows the slots"
        )
        assert [read_in(number) for number in range(BATCHES, BATCHES + 2)] == [1, 1]
        reasons = ["sources_follow", "sources_follow", "files_stay_whole"]
        eventually(lambda: shown(executors, query)[1][-3:] == reasons, "it is said what stays whole")
    finally:
        query.stop()


@pytest.mark.slow
def test_what_cannot_be_divided_is_said_and_a_shuffle_in_foreach_batch_is_seen(
    executors: Executors, tmp_path: Path
) -> None:
    def count(batch: DataFrame, _: int) -> None:
        batch.groupBy(F.col("value") % 7).count().collect()

    rates = executors.spark.readStream.format("rate").option("rowsPerSecond", 50).load()
    plain = rates.writeStream.format("noop").queryName("plain").start()
    counted = rates.writeStream.foreachBatch(count).queryName("counted").start()
    try:
        eventually(lambda: shown(executors, plain)[1][-1:] == ["sources_stay"], "it is said of the one")
        eventually(
            lambda: (shown(executors, counted)[0]["lastBatch"] or {"batch": 0})["batch"] > 2 * BATCHES,
            "the other one has had its chance",
        )
        executors.add()
        eventually(lambda: shown(executors, counted)[1][-1:] == ["in_place"], "its shuffles follow the slots")
        assert "sources_stay" not in shown(executors, counted)[1]
        assert shown(executors, plain)[1][-1:] == ["sources_stay"]
    finally:
        plain.stop()
        counted.stop()
