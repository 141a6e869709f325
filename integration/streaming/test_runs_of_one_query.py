"""Tests of what a query keeps when it is rescaled, so that a rescale is only a pause."""

from __future__ import annotations

import socket
import threading

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from integration.streaming.files import Inbox
from integration.streaming.waiting import PATIENCE_S, eventually
from integration.streaming.world import World, feed_until_rescaled, stream, totals

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def rescale_once(world: World, query: StreamingQuery) -> None:
    """Rescale a query that has nothing to read."""
    world.policy.order(now=1)
    eventually(lambda: world.policy.rescales(query.id) == 1, "it is rescaled")


def test_settings_views_and_functions_are_those_of_the_start(world: World, inbox: Inbox) -> None:
    found: list[tuple[str | None, str | None, int]] = []

    def look(batch: DataFrame, number: int) -> None:
        session = batch.sparkSession
        batch.count()
        if number == 0:
            session.conf.set("app.batches", "of the first batch")
            batch.createOrReplaceTempView("first_batch")
        rows = session.sql("SELECT count(*) FROM first_batch").collect()[0][0]
        found.append((session.conf.get("app.own", None), session.conf.get("app.batches", None), rows))

    world.spark.conf.set("app.own", "at the start")
    world.spark.sql("CREATE DATABASE IF NOT EXISTS elsewhere")
    try:
        rows = stream(world.spark, inbox).dropDuplicates(["value"])
        query = rows.writeStream.foreachBatch(look).start()
        inbox.put()
        query.processAllAvailable()
        world.spark.conf.set("app.own", "later")
        world.spark.sql("USE elsewhere")
        world.policy.order(every=1)
        feed_until_rescaled(world, inbox, query, 2)
        world.policy.order()
        inbox.put()
        query.processAllAvailable()
    finally:
        world.spark.sql("USE default")
        world.spark.conf.unset("app.own")
    assert len(found) >= 3
    assert set(found) == {("at the start", "of the first batch", 10)}


def test_windows_that_have_closed_do_not_wait_for_new_data(world: World, inbox: Inbox) -> None:
    """Spark emits them in a micro-batch without data, which it plans from the previous micro-batch alone."""
    windows: list[int] = []
    held, release = threading.Event(), threading.Event()

    def note(batch: DataFrame, number: int) -> None:
        if number == 1:
            held.set()
            assert release.wait(PATIENCE_S)
        windows.extend(row.start for row in batch.collect())

    timed = stream(world.spark, inbox).withColumn("time", F.timestamp_seconds("value"))
    counts = timed.withWatermark("time", "0 seconds").groupBy(F.window("time", "5 seconds")).count()
    starts = counts.select(F.unix_timestamp("window.start").alias("start"))
    query = starts.writeStream.outputMode("append").foreachBatch(note).start()
    inbox.put(2)
    assert held.wait(PATIENCE_S)
    world.policy.order(now=1)
    eventually(lambda: world.policy.sent("Rescale", query.id), "the order waits for the end of the batch")
    release.set()
    eventually(lambda: world.policy.rescales(query.id) == 1, "it is rescaled")
    query.processAllAvailable()
    eventually(lambda: sorted(windows) == [0, 5, 10], "the batch without data")
    inbox.put()
    query.processAllAvailable()
    assert sorted(windows) == [0, 5, 10, 15, 20]


def test_an_idle_query_explains_what_it_has_run(world: World, inbox: Inbox) -> None:
    query = totals(world.spark, inbox).writeStream.format("noop").outputMode("update").start()
    inbox.put()
    query.processAllAvailable()
    rescale_once(world, query)
    assert "StateStoreSave" in query._jsq.explainInternal(False)


def test_jobs_are_named_after_the_call_that_has_started_the_query(world: World, inbox: Inbox) -> None:
    query = totals(world.spark, inbox).writeStream.format("noop").outputMode("update").start()
    inbox.put()
    query.processAllAvailable()
    rescale_once(world, query)
    inbox.put()
    query.processAllAvailable()
    jobs = world.spark._jsparkSession.sparkContext().statusStore().jobsList(None)
    mine = [jobs.apply(n) for n in range(jobs.size())]
    names = {job.name() for job in mine if job.jobGroup().contains(query.runId)}
    assert names == {"start at NativeMethodAccessorImpl.java:0"}


def test_a_query_that_fails_while_a_rescale_is_ordered_ends_as_in_plain_spark(
    world: World, inbox: Inbox
) -> None:
    held, release = threading.Event(), threading.Event()

    def fail(batch: DataFrame, number: int) -> None:
        held.set()
        assert release.wait(PATIENCE_S)
        raise ValueError("the application's own mistake")

    query = stream(world.spark, inbox).writeStream.foreachBatch(fail).start()
    inbox.put()
    assert held.wait(PATIENCE_S)
    world.policy.order(now=1)
    eventually(lambda: world.policy.sent("Rescale", query.id), "the order waits for the end of the batch")
    release.set()
    with pytest.raises(StreamingQueryException, match="the application's own mistake"):
        query.awaitTermination(int(PATIENCE_S))


class Lines:
    """A server of lines, for one client."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._client: socket.socket | None = None

    def send(self, *lines: str) -> None:
        if self._client is None:
            self._client, _ = self._server.accept()
        self._client.sendall("".join(f"{line}\n" for line in lines).encode())

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
        self._server.close()


def test_a_source_that_cannot_begin_anew_goes_on(world: World) -> None:
    words: dict[str, int] = {}

    def note(batch: DataFrame, number: int) -> None:
        words.update({row.value: row["count"] for row in batch.collect()})

    lines = Lines()
    try:
        reader = (
            world.spark.readStream.format("socket").option("host", "127.0.0.1").option("port", lines.port)
        )
        counts = reader.load().groupBy("value").count()
        query = counts.writeStream.outputMode("update").foreachBatch(note).start()
        lines.send("one", "two")
        eventually(lambda: words == {"one": 1, "two": 1}, "the first words")
        rescale_once(world, query)
        lines.send("two", "three")
        eventually(lambda: words == {"one": 1, "two": 2, "three": 1}, "all words")
        assert query.isActive
        query.stop()
        assert query.exception() is None
    finally:
        lines.close()
