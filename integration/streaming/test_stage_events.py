"""Tests of the stage events that the policy gets: for micro-batches that read a shuffle, and no others."""

from __future__ import annotations

import time
from typing import Any

import pytest
from pyspark.sql import DataFrame

from integration.streaming.files import Inbox
from integration.streaming.waiting import eventually
from integration.streaming.world import World, totals

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

DRIVER_S = 1.0
LONG_MS = 10_000
TASKS = 5


@pytest.mark.slow
def test_what_stages_take_is_told_apart_from_what_the_driver_takes(world: World, inbox: Inbox) -> None:
    def write(batch: DataFrame, number: int) -> None:
        batch.collect()
        time.sleep(DRIVER_S)  # such as a call of a service: no executor is involved

    query = totals(world.spark, inbox).writeStream.foreachBatch(write).outputMode("update").start()
    inbox.put(2)
    query.processAllAvailable()
    world.spark.range(1000).repartition(2).count()
    inbox.put(2)
    query.processAllAvailable()

    def told_ms() -> dict[int, int]:
        """Return the duration of each micro-batch, once the second one is reported."""
        found = {p["batch"]: p["duration_ms"] for p in world.policy.seen("QueryProgress", query.id)}
        return found if 1 in found else {}

    took_ms = eventually(told_ms, "progress is told")
    stages = eventually(
        lambda: {s["batch"]: s for s in world.policy.seen("StageCompleted", query.id) if s["batch"] == 1},
        "the stages of the second batch are told",
    )
    assert {s["query"] for s in world.policy.all("StageCompleted")} == {query.id}
    assert stages[1]["tasks"] == 2
    assert 0 < stages[1]["duration_ms"] <= took_ms[1] - DRIVER_S * 1_000


def test_words_of_the_application_make_no_job_one_of_ours(world: World, inbox: Inbox) -> None:
    def write(batch: DataFrame, number: int) -> None:
        batch.sparkSession.sparkContext.setJobDescription("spark-elastic: what this application is about")
        batch.collect()

    query = totals(world.spark, inbox).writeStream.foreachBatch(write).outputMode("update").start()
    inbox.put()
    query.processAllAvailable()
    eventually(lambda: world.policy.seen("StageCompleted", query.id), "its stages are told")


def test_the_jobs_of_a_move_are_no_stages_of_a_batch(world: World, inbox: Inbox) -> None:
    marks: list[str | None] = []

    def write(batch: DataFrame, number: int) -> None:
        batch.collect()
        marks.append(batch.sparkSession.sparkContext.getLocalProperty("spark.elastic.own"))

    def told() -> list[int]:
        return [stage["batch"] for stage in world.policy.seen("StageCompleted", query.id)]

    query = totals(world.spark, inbox).writeStream.foreachBatch(write).outputMode("update").start()
    inbox.put()
    query.processAllAvailable()
    world.policy.order(now=1)
    eventually(lambda: world.policy.rescales(query.id) == 1, "its state is moved")
    inbox.put()
    query.processAllAvailable()
    # The move itself has used number 1.
    assert eventually(lambda: told()[1:], "the stages after the move are told") == [2]
    assert told() == [0, 2]
    assert marks == [None, None]


def test_it_is_told_what_the_tasks_took_and_which_was_far_longer(world: World, inbox: Inbox) -> None:
    sleep = f"CASE WHEN id = 0 THEN reflect('java.lang.Thread', 'sleep', {LONG_MS}L) END"

    def write(batch: DataFrame, number: int) -> None:
        batch.collect()
        if number == 0:
            return  # the first batch is skipped, since every task loads classes in it
        rows = batch.sparkSession.range(TASKS).repartition(TASKS)
        rows.selectExpr(sleep).write.format("noop").mode("overwrite").save()

    def with_a_long_task() -> list[Any]:
        told = world.policy.seen("StageCompleted", query.id)
        return [stage for stage in told if (stage["batch"], stage["tasks"]) == (1, TASKS)]

    query = totals(world.spark, inbox).writeStream.foreachBatch(write).outputMode("update").start()
    for _ in range(2):
        inbox.put()
        query.processAllAvailable()
    work = eventually(with_a_long_task, "the stage with the long task is told")[-1]["work"]
    assert LONG_MS <= work["longest_ms"] <= work["run_ms"]
    assert work["longest_ms"] > 5 * work["median_ms"]
    assert 0 <= work["gc_ms"] <= work["run_ms"]
    assert work["spilled_bytes"] == 0
