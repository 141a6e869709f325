"""Tests of the events about batch stages: the remaining work, once a second, and none about micro-batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import functions as F

from integration.streaming.files import Inbox
from integration.streaming.waiting import eventually
from integration.streaming.world import World, totals

pytestmark = [pytest.mark.integration, pytest.mark.matrix, pytest.mark.timeout(300)]


def told(world: World) -> list[dict[str, Any]]:
    return list(world.policy.all("BatchStages"))


def slow_rows(world: World, tasks: int, seconds: float) -> None:
    """Run a stage whose tasks each take this long, then a stage that reads their output."""
    world.spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    reflect = f"reflect('java.lang.Thread', 'sleep', bigint({round(seconds * 1_000)}))"
    rows = world.spark.range(0, tasks, 1, tasks)
    rows = rows.withColumn("slept", F.expr(reflect)).where("slept is null or slept is not null")
    rows.withColumn("key", F.col("id") % 2).groupBy("key", "slept").agg(F.count("*")).collect()


def test_a_stage_is_told_with_what_is_left_of_it(world: World) -> None:
    slow_rows(world, tasks=24, seconds=1.0)
    last = eventually(lambda: [e for e in told(world) if not e["stages"]], "that it is over is told")[0]
    shown = [(e["at"], stage) for e in told(world) for stage in e["stages"] if stage["tasks"] == 24]
    assert shown
    times = [at for at, _ in shown]
    # On average: an event that is late on a busy machine does not delay the next one.
    assert times[-1] - times[0] >= 900 * (len(times) - 1)
    done = [stage["done"] for _, stage in shown]
    assert done == sorted(done)
    assert 0 < done[-1] <= 24
    for at, stage in shown:
        assert stage["running"] + stage["done"] <= 24
        assert stage["launched"] is None or stage["launched"] <= at
        # Busy machines add their own time to each task.
        assert 900 * stage["done"] <= stage["run_ms"] <= 30_000 * (stage["done"] + 1)
    assert shown[-1][1]["written_bytes"] > 0
    assert shown[-1][1]["bytes"] is None  # it reads no shuffle
    assert last["over"] >= 1


def test_a_stage_that_reads_a_shuffle_is_told_with_its_bytes(world: World) -> None:
    world.spark.conf.set("spark.sql.adaptive.enabled", "false")
    rows = world.spark.range(0, 1_000, 1, 2).repartition(8, "id")
    slow = rows.groupBy((F.col("id") % 8).alias("key")).agg(F.max("id").alias("most"))
    sleep = "reflect('java.lang.Thread', 'sleep', bigint(most % 2 * 0 + 1500))"
    slow.withColumn("slept", F.expr(sleep)).where("slept is null or slept is not null").collect()
    found = eventually(
        lambda: [s for e in told(world) for s in e["stages"] if s["bytes"] and s["read_bytes"]],
        "bytes are told",
    )
    assert all(stage["read_bytes"] <= stage["bytes"] for stage in found)


def test_micro_batches_are_no_batch_stages(world: World, inbox: Inbox) -> None:
    # Wait until the stages of other tests have been reported as ended.
    eventually(lambda: not told(world)[-1:] or not told(world)[-1]["stages"], "nothing is under way")
    before = len(told(world))
    query = totals(world.spark, inbox).writeStream.outputMode("update").format("noop").start()
    for _ in range(5):
        inbox.put(2)
        query.processAllAvailable()
    query.stop()
    world.spark.range(10).repartition(3).count()
    eventually(lambda: any(e["over"] for e in told(world)[before:]), "a small job is counted")
    assert sum(e["over"] for e in told(world)[before:]) <= 3


@contextmanager
def unheard(world: World) -> Iterator[Any]:
    """Run a stage, until the block ends, of which the bus reports only the start; return the listener."""
    job = Thread(target=endless_rows, args=(world,))
    job.start()
    bus = world.spark.sparkContext._jsc.sc().listenerBus()
    found = [bus.listeners().get(i) for i in range(bus.listeners().size())]
    (listener,) = (one for one in found if one.getClass().getSimpleName() == "BatchListener")
    try:
        eventually(lambda: told(world)[-1:] and told(world)[-1]["stages"], "the stage is told of")
        bus.removeListener(listener)
        try:
            yield listener
        finally:
            end(world, job)
            bus.addToSharedQueue(listener)
    finally:
        end(world, job)


def endless_rows(world: World) -> None:
    """Run a stage until its group is cancelled."""
    world.spark.sparkContext.setJobGroup("endless", "runs until it is cancelled", interruptOnCancel=True)
    with pytest.raises(Py4JJavaError, match="cancelled"):
        slow_rows(world, 10_000, 1.0)


def end(world: World, job: Thread) -> None:
    world.spark.sparkContext.cancelJobGroup("endless")
    job.join()


def test_the_end_of_a_job_is_the_end_of_its_stages(world: World) -> None:
    with unheard(world) as listener:
        jobs = world.spark.sparkContext.statusTracker().getActiveJobsIds()
        jvm: Any = world.spark._jvm
        for job in jobs:
            listener.onJobEnd(jvm.org.apache.spark.scheduler.SparkListenerJobEnd(job, 0, None))
        # The stage itself is still running.
        eventually(lambda: not told(world)[-1]["stages"], "that it is over is told")
        assert world.spark.sparkContext.statusTracker().getActiveStageIds()


def test_a_stage_whose_end_nobody_has_told_of_is_found_out(world: World) -> None:
    with unheard(world):
        assert told(world)[-1]["stages"]
    eventually(lambda: not told(world)[-1]["stages"], "that it is over is told")
