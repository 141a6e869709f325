"""Tests of Spark Connect: the plugin works in the server's driver, and clients need nothing of it."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.errors.exceptions.connect import SparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from integration.connect.listener import Heard
from integration.connect.sent import FORMAT, reader_jar
from integration.connect.server import ConnectServer, client, connect_server
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.launch import AT_ONCE
from integration.streaming.state_store import REPARTITIONABLE
from integration.streaming.waiting import PATIENCE_S, eventually
from spark_elastic.core.rescale.situation import GROWTH

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

CONF = {
    "spark.elastic.scheduler-mode": "adaptive",
    **AT_ONCE,
    # On a busy machine an answer may take longer than the default timeout.
    "spark.elastic.batch.decisionTimeout": "20s",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    with connect_server(tmp_path_factory.mktemp("connect") / "server", CONF) as running:
        eventually(lambda: running.api.get("/stages").status == 200, "the policy answers")
        yield running


@pytest.fixture
def inbox(tmp_path: Path) -> Inbox:
    return Inbox(tmp_path / "in")


def totals_joined(spark: SparkSession, rows: int) -> DataFrame:
    numbers = spark.range(0, rows, 1, 3).select("id", (F.col("id") % 50).alias("k"))
    return numbers.groupBy("k").agg(F.sum("id").alias("total")).join(numbers, "k")


def expected_totals(rows: int) -> list[tuple[int, int, int]]:
    totals = {k: sum(range(k, rows, 50)) for k in range(50)}
    return sorted((i % 50, totals[i % 50], i) for i in range(rows))


def decided(server: ConnectServer) -> list[Any]:
    """Return the decisions about stages, oldest first."""
    return list(reversed(server.api.get("/stages").json["stages"]))


def decide_about(server: ConnectServer, spark: SparkSession, rows: int) -> list[Any]:
    """Run a query over this many rows, check its answer, and return the decisions about its stages."""
    before = len(decided(server))
    assert sorted(map(tuple, totals_joined(spark, rows).collect())) == expected_totals(rows)
    # One about its shuffles, and one about reading both sides.
    eventually(lambda: len(decided(server)) >= before + 2, "its stages are shown")
    return decided(server)[before:]


def test_a_batch_query_is_decided_about_and_keeps_its_number(
    server: ConnectServer, spark: SparkSession
) -> None:
    count, ranges = decide_about(server, spark, 2_000)
    assert (count["question"], ranges["question"]) == ("InitialCount", "Ranges")
    assert (count["before"], count["after"]) == (200, 4)
    assert (ranges["before"], ranges["after"]) == (4, 1)
    again, _ = decide_about(server, spark, 2_000)
    assert (again["after"], again["reason"]) == (4, "initial_kept")


def start_distinct(spark: SparkSession, inbox: Inbox, table: str) -> StreamingQuery:
    """Start a stateful query that writes each value once, which must give exactly the input rows."""
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(inbox.folder))
    return (
        rows.dropDuplicates(["value"])
        .writeStream.queryName("distinct")
        .option("checkpointLocation", str(inbox.folder.parent / f"checkpoint-{table}"))
        .trigger(processingTime="100 milliseconds")
        .toTable(table)
    )


def rescale(server: ConnectServer, query: StreamingQuery, inbox: Inbox, most: int) -> None:
    """Request another upper bound, and feed the query until it has been restarted with it."""
    path = f"/queries/{query.id}"
    bounds = {"shuffle": {"parallelism": {"lowerBound": 1, "upperBound": most}}}
    assert server.api.put(f"{path}/resource-requirements", bounds).status == 200

    def restarted() -> bool:
        inbox.put()
        query.processAllAvailable()
        newest = server.api.get(f"{path}/rescales").json["rescales"][:1]
        return [(r["status"], r["partitionsAfter"]) for r in newest] == [("completed", most)]

    eventually(restarted, f"the query runs with {most}")


def test_the_clients_handle_outlives_a_restart(
    server: ConnectServer, spark: SparkSession, inbox: Inbox
) -> None:
    heard = Heard()
    spark.streams.addListener(heard)
    inbox.put()
    query = start_distinct(spark, inbox, "outliving")
    run = (query.id, query.runId)
    assert heard.started == [run]
    query.processAllAvailable()
    shown = server.api.get(f"/queries/{query.id}").json
    assert (shown["name"], shown["run"], shown["partitions"]) == ("distinct", query.runId, 2)

    rescale(server, query, inbox, 1)
    inbox.put()
    query.processAllAvailable()
    assert (query.isActive, query.exception(), query.awaitTermination(1)) == (True, None, False)
    assert "numPartitions = 1]" in explained(query)
    found = spark.streams.get(query.id)
    assert found is not None
    assert [(q.id, q.runId) for q in (found, *spark.streams.active)] == [run, run]
    progress = query.recentProgress
    assert {(str(p["id"]), str(p["runId"])) for p in progress} == {run}
    # The re-partitioning itself uses up a number of a micro-batch.
    batches = [p["batchId"] for p in progress if p["numInputRows"]]
    assert batches == sorted(set(batches))

    query.stop()
    assert not query.isActive
    assert query.awaitTermination(30) is True
    assert spark.streams.active == []
    assert query.lastProgress is not None
    assert sorted(row["value"] for row in spark.table("outliving").collect()) == inbox.values()
    eventually(lambda: heard.terminated, "the client hears of the end")
    assert (heard.started, heard.terminated) == ([run], [run])
    assert set(heard.progress) == {run}
    spark.streams.removeListener(heard)


def explained(query: StreamingQuery) -> str:
    """Return the output of `explain`."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        query.explain()
    return text.getvalue()


def numbered(spark: SparkSession, inbox: Inbox, file_format: str) -> DataFrame:
    """Read the values of the files as text of this format."""
    lines = spark.readStream.format(file_format).schema("value string").option("maxFilesPerTrigger", 1)
    value = F.get_json_object("value", "$.value").cast("int")
    return lines.load(str(inbox.folder)).select(value.alias("value"))


def started(query: DataStreamWriter) -> StreamingQuery:
    """Start a query with a `foreachBatch` function; its process has only 10 s to start."""

    def attempt() -> StreamingQuery | None:
        try:
            return query.start()
        except SparkException as error:
            if "Python worker failed to connect back" not in str(error):
                raise
            return None

    found = eventually(attempt, "the process for the function has come up")
    assert found is not None
    return found


def append_each(batches: DataFrame, folder: Path) -> StreamingQuery:
    """Write each value once, by a function in a process that the server starts for the query."""
    output = str(folder / "out")

    def append(batch: DataFrame, _number: int) -> None:
        batch.write.mode("append").parquet(output)

    return started(
        batches.dropDuplicates(["value"])
        .writeStream.foreachBatch(append)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime="100 milliseconds")
    )


def appended(spark: SparkSession, folder: Path) -> list[int]:
    return sorted(row["value"] for row in spark.read.parquet(str(folder / "out")).collect())


def test_what_the_client_has_sent_is_there_after_a_restart(
    server: ConnectServer, spark: SparkSession, inbox: Inbox, tmp_path: Path
) -> None:
    spark.addArtifacts(str(reader_jar(tmp_path)))
    for key, value in REPARTITIONABLE.items():
        spark.conf.set(key, value)
    inbox.put()
    query = append_each(numbered(spark, inbox, FORMAT), tmp_path)
    query.processAllAvailable()
    rescale(server, query, inbox, 1)
    inbox.put()
    query.processAllAvailable()
    query.stop()
    assert appended(spark, tmp_path) == inbox.values()


def test_a_function_for_batches_with_state_works_with_nothing_set(
    server: ConnectServer, spark: SparkSession, inbox: Inbox, tmp_path: Path
) -> None:
    query = append_each(numbered(spark, inbox, "text"), tmp_path)
    for _ in range(2):
        inbox.put()
        query.processAllAvailable()
    shown = server.api.get(f"/queries/{query.id}").json
    # Its state stays where Spark keeps it: this count is permanent and leaves room for more than two slots.
    assert (shown["partitions"], shown["restarts"]) == (2 * GROWTH, 0)
    query.stop()
    assert appended(spark, tmp_path) == inbox.values()


def test_a_function_for_batches_that_fails_ends_the_query_with_its_own_error(
    server: ConnectServer, spark: SparkSession, inbox: Inbox
) -> None:
    def refuse(_batch: DataFrame, _number: int) -> None:
        raise ValueError("no batch is good enough")

    inbox.put()
    query = started(numbered(spark, inbox, "text").writeStream.foreachBatch(refuse))
    with pytest.raises(StreamingQueryException, match="no batch is good enough"):
        query.awaitTermination(int(PATIENCE_S))
    assert not query.isActive
    failures = server.api.get(f"/queries/{query.id}/exceptions").json["exceptions"]
    assert len(failures) == 1


def test_each_session_is_covered_and_takes_only_its_own_queries_with_it(
    server: ConnectServer, spark: SparkSession, tmp_path: Path
) -> None:
    other = client(server)
    inboxes = [Inbox(tmp_path / name / "in") for name in ("first", "second")]
    # Both have the same name, and each session sees only its own.
    queries = [
        start_distinct(session, inbox, f"of_{inbox.folder.parent.name}")
        for session, inbox in zip((spark, other), inboxes, strict=True)
    ]
    for rows, session, query, inbox in zip((900, 800), (spark, other), queries, inboxes, strict=True):
        assert [q.id for q in session.streams.active] == [query.id]
        inbox.put()
        query.processAllAvailable()
        assert server.api.get(f"/queries/{query.id}").json["partitions"] == 2
        assert decide_about(server, session, rows)[0]["after"] == 4
    other.stop()
    gone = f"/queries/{queries[1].id}"
    eventually(lambda: server.api.get(gone).json["state"] == "Finished", "its query has ended with it")
    rescale(server, queries[0], inboxes[0], 1)
    assert queries[0].isActive
