"""Tests that a rescale ordered during a micro-batch waits for its end, however long that takes."""

from __future__ import annotations

import time

import pytest
from pyspark.sql import DataFrame

from integration.streaming.files import Inbox
from integration.streaming.waiting import eventually
from integration.streaming.world import World, stream

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

LONG = 3
# Longer than any default timeout.
LONG_S = 35.0


def test_a_batch_that_is_long_after_short_ones_runs_once_and_to_its_end(world: World, inbox: Inbox) -> None:
    begun: list[int] = []
    rescaled_meanwhile: list[int] = []

    def write(batch: DataFrame, number: int) -> None:
        begun.append(number)
        batch.collect()
        if number == LONG:
            world.policy.order(now=1)
            eventually(lambda: world.policy.sent("Rescale", query.id) > 0, "the rescale is ordered")
            time.sleep(LONG_S)
            rescaled_meanwhile.append(world.policy.rescales(query.id))

    rows = stream(world.spark, inbox).dropDuplicates(["value"])
    query = rows.writeStream.foreachBatch(write).start()
    for _ in range(LONG + 1):
        inbox.put()
        query.processAllAvailable()
    eventually(lambda: world.policy.rescales(query.id) == 1, "the query is rescaled")
    inbox.put()
    query.processAllAvailable()
    query.stop()
    assert rescaled_meanwhile == [0]
    assert begun == sorted(set(begun))
    assert query.exception() is None
