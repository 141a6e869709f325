"""Tests that a stateless query runs with the ordered partition count, whatever its checkpoint contains.

Before Spark 4.1 the offset log has the count of each micro-batch, and reading it sets the session back.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from integration.streaming.driver import Driver
from integration.streaming.files import Inbox
from integration.streaming.test_failures import session
from integration.streaming.world import stream

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

KEY = "spark.sql.shuffle.partitions"
OLD, SLOTS = 7, 2


class Sink:
    """Records the count of each micro-batch; fails once in the one with this number."""

    def __init__(self, fails_in: int | None = None) -> None:
        self.counts: list[tuple[int, str | None]] = []
        self.failed = False
        self._fails_in = fails_in

    def __call__(self, batch: DataFrame, number: int) -> None:
        batch.collect()
        self.counts.append((number, batch.sparkSession.conf.get(KEY)))
        if number == self._fails_in and not self.failed:
            self.failed = True
            raise ValueError("the sink is ill")


def run(spark: SparkSession, inbox: Inbox, sink: Sink, checkpoint: Path, files: int) -> None:
    writer = stream(spark, inbox).repartition("key").writeStream.foreachBatch(sink)
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    for _ in range(files):
        inbox.put()
        query.processAllAvailable()
    query.stop()


def test_it_is_kept_at_a_start_from_an_old_checkpoint_and_when_a_micro_batch_is_tried_again(
    jvm: Driver, inbox: Inbox, tmp_path: Path
) -> None:
    before, sink = Sink(), Sink(fails_in=2)
    with jvm.session({KEY: str(OLD)}) as spark:
        run(spark, inbox, before, tmp_path / "checkpoint", files=1)
    assert before.counts == [(0, str(OLD))]
    with session(jvm, "fixed-delay") as spark:
        run(spark, inbox, sink, tmp_path / "checkpoint", files=3)
    assert sink.counts == [(number, str(SLOTS)) for number in (1, 2, 2, 3)]
