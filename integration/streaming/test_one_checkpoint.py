"""Tests of two queries with the same checkpoint, or the same name: Spark's own rules apply."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from integration.streaming.files import Inbox
from integration.streaming.waiting import eventually
from integration.streaming.world import World, failure, is_active, stream

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def start_twice(
    world: World, inbox: Inbox, checkpoint: Path, spark: SparkSession, name: str | None = None
) -> StreamingQuery:
    writer = stream(spark, inbox).writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    return (writer.queryName(name) if name else writer).start()


@pytest.mark.parametrize("held", [False, True], ids=["running", "held"])
def test_a_second_query_on_one_checkpoint_is_refused(
    world: World, inbox: Inbox, tmp_path: Path, held: bool
) -> None:
    key = "spark.sql.streaming.stopActiveRunOnRestart"
    world.spark.conf.set(key, "false")
    try:
        world.policy.order(hold=held)
        first = start_twice(world, inbox, tmp_path / "checkpoint", world.spark)
        inbox.put()
        if not held:
            first.processAllAvailable()
        text = failure(lambda: start_twice(world, inbox, tmp_path / "checkpoint", world.spark))
        assert "another query with same id is already active" in text
        assert is_active(first)
        world.policy.order()
        inbox.put()
        first.processAllAvailable()
        assert [q.id for q in world.spark.streams.active] == [first.id]
    finally:
        world.spark.conf.unset(key)


@pytest.mark.parametrize("held", [False, True], ids=["running", "held"])
def test_as_spark_does_by_default_a_second_query_on_one_checkpoint_ends_the_first(
    world: World, inbox: Inbox, tmp_path: Path, held: bool
) -> None:
    world.policy.order(hold=held)
    first = start_twice(world, inbox, tmp_path / "checkpoint", world.spark)
    inbox.put()
    if not held:
        first.processAllAvailable()
    second = start_twice(world, inbox, tmp_path / "checkpoint", world.spark)
    assert second.id == first.id
    assert second.runId != first.runId
    eventually(lambda: not is_active(first), "the first has ended")
    assert first.exception() is None
    assert second.isActive
    world.policy.order()
    inbox.put()
    second.processAllAvailable()
    assert [q.runId for q in world.spark.streams.active] == [second.runId]


@pytest.mark.parametrize("held", [False, True], ids=["running", "held"])
def test_a_name_that_is_taken_is_refused(world: World, inbox: Inbox, tmp_path: Path, held: bool) -> None:
    world.policy.order(hold=held)
    first = start_twice(world, inbox, tmp_path / "one", world.spark, name="taken")
    inbox.put()
    if not held:
        first.processAllAvailable()
    text = failure(lambda: start_twice(world, inbox, tmp_path / "two", world.spark, name="taken"))
    assert "Cannot start query with name taken" in text
    assert is_active(first)
