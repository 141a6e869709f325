"""Tests that a query with several inputs keeps plain Spark's watermark through moves of state and retries.

Spark's checkpoint has only the watermark of the whole query. The watermark of each input is only in the run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from integration.spark_minor import MOVES_STATE
from integration.streaming.driver import PLUGIN, Driver
from integration.streaming.files import Inbox
from integration.streaming.stand_ins import ScriptedPolicy
from integration.streaming.state_store import REPARTITIONABLE
from integration.streaming.test_failures import session
from integration.streaming.waiting import eventually
from integration.streaming.world import stream

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

FILES = 4
ROWS = 20
POLICY = "spark.sql.streaming.multipleWatermarkPolicy"
Seen = list[tuple[list[Row], str]]


def nothing(_: str, __: int) -> None:
    """Do nothing to the query."""


class Sink:
    """Keeps the output of the micro-batches; fails once in the one after this many files."""

    def __init__(self, fails_after: int | None = None) -> None:
        self.rows: list[Row] = []
        self.files = 0
        self.failed = False
        self._fails_after = fails_after

    def __call__(self, batch: DataFrame, _: int) -> None:
        rows = batch.collect()
        if self.files == self._fails_after and not self.failed:
            self.failed = True
            raise ValueError("the sink is ill")
        self.rows += rows


def seen(
    spark: SparkSession, inbox: Inbox, sink: Sink, between: Callable[[str, int], None] = nothing
) -> Seen:
    """Return the output after each file, and the watermark then."""
    rows = stream(spark, inbox)
    slow = rows.withColumn("time", F.timestamp_seconds("value")).withWatermark("time", "5 seconds")
    # It is ahead of the other input, and has no rows after the first file.
    ahead = (
        rows.where(F.col("value") < ROWS)
        .withColumn("time", F.timestamp_seconds(F.col("value") + 1000))
        .withWatermark("time", "5 seconds")
    )
    counts = slow.unionByName(ahead).groupBy(F.window("time", "5 seconds")).count()
    query = counts.writeStream.outputMode("append").foreachBatch(sink).start()
    found: Seen = []
    for number in range(FILES):
        if number > 0:
            between(query.id, number)
        sink.rows, sink.files = [], number
        inbox.put(rows=ROWS)
        query.processAllAvailable()
        assert query.lastProgress is not None
        found.append((sorted(sink.rows, key=str), query.lastProgress["eventTime"].get("watermark", "none")))
    query.stop()
    return found


@pytest.fixture
def expected(jvm: Driver, tmp_path: Path, policy: str) -> Seen:
    """Return plain Spark's output."""
    with jvm.session({**REPARTITIONABLE, "spark.sql.shuffle.partitions": "2", POLICY: policy}) as spark:
        found = seen(spark, Inbox(tmp_path / "expected"), Sink())
    if policy == "min":
        watermarks = [watermark for _, watermark in found]
        assert watermarks == sorted(set(watermarks)), "the slow input moves it on with each file"
    return found


@pytest.mark.skipif(not MOVES_STATE, reason="state is moved from Spark 4.2 on")
@pytest.mark.parametrize("policy", ["min", "max"])
def test_it_goes_on_after_each_move_of_state(
    jvm: Driver, inbox: Inbox, tmp_path: Path, expected: Seen, policy: str
) -> None:
    script = ScriptedPolicy(tmp_path / "policy")

    def rescale(query: str, number: int) -> None:
        script.order(now=number, counts=(3, 1, 2))
        eventually(lambda: script.rescales(query) == number, f"rescale {number}")

    with jvm.session({**PLUGIN, "spark.elastic.python": script.python, POLICY: policy}) as spark:
        assert seen(spark, inbox, Sink(), rescale) == expected


@pytest.mark.parametrize("policy", ["min", "max"])
def test_it_goes_on_after_a_micro_batch_that_was_tried_again(
    jvm: Driver, inbox: Inbox, expected: Seen, policy: str
) -> None:
    sink = Sink(fails_after=1)
    with session(jvm, "fixed-delay", **{POLICY: policy}) as spark:
        assert seen(spark, inbox, sink) == expected
    assert sink.failed
