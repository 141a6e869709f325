"""Tests that the policy is told of a micro-batch as it begins, once, and before it is committed."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame

from integration.streaming.files import Inbox
from integration.streaming.waiting import eventually
from integration.streaming.world import World, totals

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def test_each_batch_is_told_once_and_before_its_rows_are_read(world: World, inbox: Inbox) -> None:
    told_in_batch: list[list[int]] = []

    def planned() -> list[int]:
        return [event["batch"] for event in world.policy.seen("BatchPlanned", query.id)]

    def write(batch: DataFrame, number: int) -> None:
        batch.count()
        batch.repartition(3).count()  # plans that belong to the batch
        eventually(lambda: number in planned(), "this batch is told while it runs")
        told_in_batch.append(planned())

    query = totals(world.spark, inbox).writeStream.foreachBatch(write).outputMode("update").start()
    for _ in range(3):
        inbox.put()
        query.processAllAvailable()
    assert [one[-1] for one in told_in_batch] == [0, 1, 2]
    assert planned() == [0, 1, 2]
    # Files do not say how many rows they have.
    assert {event["input_rows"] for event in world.policy.seen("BatchPlanned", query.id)} == {None}
