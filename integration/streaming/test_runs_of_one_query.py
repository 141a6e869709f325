"""What a run takes over from the run before, so that a restart is nothing but a pause."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.waiting import PATIENCE_S, eventually
from integration.streaming.world import World, feed_until_restarted, stream, totals

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def restart_once(world: World, query: StreamingQuery) -> None:
    """Restart a query that has nothing to read."""
    world.policy.order(now=True)
    eventually(lambda: world.policy.restarts(query.id) == 1, "it runs again")


def test_settings_views_and_functions_are_those_of_the_first_run(world: World, inbox: Inbox) -> None:
    found: list[tuple[str | None, str | None, int]] = []

    def look(batch: DataFrame, number: int) -> None:
        session = batch.sparkSession
        if number == 0:
            session.conf.set("app.batches", "of the first batch")
            batch.createOrReplaceTempView("first_batch")
        rows = session.sql("SELECT count(*) FROM first_batch").collect()[0][0]
        found.append((session.conf.get("app.own", None), session.conf.get("app.batches", None), rows))

    world.spark.conf.set("app.own", "at the start")
    world.spark.sql("CREATE DATABASE IF NOT EXISTS elsewhere")
    try:
        query = stream(world.spark, inbox).writeStream.foreachBatch(look).start()
        inbox.put()
        query.processAllAvailable()
        world.spark.conf.set("app.own", "later")
        world.spark.sql("USE elsewhere")
        world.policy.order(every=1)
        feed_until_restarted(world, inbox, query, 2)
        world.policy.order()
        inbox.put()
        query.processAllAvailable()
    finally:
        world.spark.sql("USE default")
        world.spark.conf.unset("app.own")
    assert len(found) >= 4
    assert set(found) == {("at the start", "of the first batch", 10)}


def test_windows_that_have_closed_do_not_wait_for_new_data(world: World, inbox: Inbox) -> None:
    """Spark emits them in a batch without data, which it plans from the batch before alone."""
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
    world.policy.order(now=True)
    # With its lock taken, the batch ends in the boundary that the stop waits for.
    eventually(lambda: threads_in(world, "GracefulStop"), "the stop waits for the batch")
    release.set()
    eventually(lambda: world.policy.restarts(query.id) == 1, "it runs again")
    query.processAllAvailable()
    assert sorted(windows) == [0, 5, 10]
    inbox.put()
    query.processAllAvailable()
    assert sorted(windows) == [0, 5, 10, 15, 20]


def test_an_idle_query_explains_what_it_has_run(world: World, inbox: Inbox) -> None:
    query = totals(world.spark, inbox).writeStream.format("noop").outputMode("update").start()
    inbox.put()
    query.processAllAvailable()
    restart_once(world, query)
    assert "StateStoreSave" in query._jsq.explainInternal(False)


def test_jobs_are_named_after_the_call_that_has_started_the_query(world: World, inbox: Inbox) -> None:
    query = totals(world.spark, inbox).writeStream.format("noop").outputMode("update").start()
    inbox.put()
    query.processAllAvailable()
    restart_once(world, query)
    inbox.put()
    query.processAllAvailable()
    jobs = world.spark._jsparkSession.sparkContext().statusStore().jobsList(None)
    mine = [jobs.apply(n) for n in range(jobs.size())]
    names = {job.name() for job in mine if job.jobGroup().contains(query.runId)}
    assert names == {"start at NativeMethodAccessorImpl.java:0"}


def test_a_start_that_is_interrupted_leaves_no_query_and_no_checkpoint(world: World, inbox: Inbox) -> None:
    before = world.temporary_checkpoints()
    failures: list[BaseException] = []
    world.policy.order(hold=True)

    def start() -> None:
        try:
            totals(world.spark, inbox).writeStream.format("noop").outputMode("update").start()
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    waiting = eventually(lambda: threads_in(world, "startFirst"), "it waits for the policy")
    waiting[0].interrupt()
    thread.join(PATIENCE_S)
    assert len(failures) == 1
    world.policy.order()
    eventually(lambda: world.temporary_checkpoints() == before, "its checkpoint is gone")
    assert world.spark.streams.active == []


def threads_in(world: World, place: str) -> list[Any]:
    """Return the JVM's threads that are in this method or object of the plugin's."""
    stacks = world.driver.jvm.java.lang.Thread.getAllStackTraces()
    return [
        thread
        for thread in stacks.keySet()
        if any("elastic" in str(at) and place in str(at) for at in stacks[thread])
    ]


def test_a_batch_that_fails_for_our_interrupt_does_not_end_the_query(world: World, inbox: Inbox) -> None:
    batches: list[int] = []
    held = threading.Event()

    def note(batch: DataFrame, number: int) -> None:
        batches.append(number)
        if batches == [0, 1]:
            held.set()
            eventually(lambda: any("is interrupted" in line for line in world.driver.said()), "the interrupt")
            raise ValueError("the connection was interrupted")

    query = stream(world.spark, inbox).writeStream.foreachBatch(note).start()
    inbox.put(2)
    assert held.wait(PATIENCE_S)
    world.policy.order(now=True, grace_ms=300)
    eventually(lambda: world.policy.restarts(query.id) == 1, "it runs again")
    query.processAllAvailable()
    assert query.isActive
    assert query.exception() is None
    assert batches == [0, 1, 1]


def test_a_query_that_fails_by_itself_while_it_is_to_stop_ends(world: World, inbox: Inbox) -> None:
    held, release = threading.Event(), threading.Event()

    def fail(batch: DataFrame, number: int) -> None:
        held.set()
        assert release.wait(PATIENCE_S)
        raise ValueError("the application's own mistake")

    query = stream(world.spark, inbox).writeStream.foreachBatch(fail).start()
    inbox.put()
    assert held.wait(PATIENCE_S)
    world.policy.order(now=True)
    eventually(lambda: threads_in(world, "GracefulStop"), "the stop waits for the batch")
    release.set()
    with pytest.raises(StreamingQueryException, match="the application's own mistake"):
        query.awaitTermination(int(PATIENCE_S))


def test_a_source_that_forgets_is_not_restarted_for_a_rescale(world: World, inbox: Inbox) -> None:
    reader = world.spark.readStream.format("socket").option("host", "127.0.0.1").option("port", 9)
    with pytest.raises(StreamingQueryException):  # nobody listens there
        reader.load().writeStream.format("noop").queryName("forgets").start().awaitTermination()
    submitted = world.policy.all("QuerySubmitted")
    by_name = {event["facts"]["name"]: event["facts"]["restartable"] for event in submitted}
    assert by_name["forgets"] is False
    rows = world.spark.readStream.schema(SCHEMA).json(str(inbox.folder))
    query = rows.writeStream.format("noop").queryName("remembers").start()
    submitted = world.policy.all("QuerySubmitted")
    assert [e["facts"]["restartable"] for e in submitted if e["facts"]["name"] == "remembers"] == [True]
    query.stop()
