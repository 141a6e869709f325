"""Tests that each query of Nexmark writes as a stream what it returns as a batch, over events as defined."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from integration.bench.nexmark.events import FIRST_ID, register
from integration.bench.nexmark.queries import QUERIES
from integration.bench.nexmark.streams import compare, exact, start, watermark_of
from integration.streaming.driver import driver

pytestmark = pytest.mark.integration

EVENTS, FILES = 30_000, 2
_TIMEOUT_S = 100
# One of each kind; the others take as long again.
_QUICK = ("q1", "q3", "q5", "q8", "q11", "q18")


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    conf = {"spark.sql.shuffle.partitions": "2"}
    with driver(tmp_path_factory.mktemp("nexmark") / "driver") as jvm, jvm.session(conf) as session:
        yield session


@pytest.fixture(scope="module")
def numbers(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """A stream of the events' numbers, a file in each micro-batch."""
    folder = tmp_path_factory.mktemp("lines")
    for part in range(FILES):
        file = folder / f"{part}.txt"
        share = EVENTS // FILES
        file.write_text("".join(f"{number}\n" for number in range(part * share, (part + 1) * share)))
        os.utime(file, (part, part))
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder))
    return lines.selectExpr("CAST(value AS BIGINT) AS n")


def written(numbers: DataFrame, name: str, folder: Path) -> int | None:
    """Run a query to its end, into a folder; return its last watermark."""
    query = start(numbers, name, str(folder / "output"), str(folder / "checkpoint"), {"availableNow": True})
    assert query.awaitTermination(_TIMEOUT_S)
    assert len({report["batchId"] for report in query.recentProgress if report["numInputRows"]}) == FILES
    return watermark_of(query)


@pytest.mark.parametrize(
    "name", [name if name in _QUICK else pytest.param(name, marks=pytest.mark.slow) for name in QUERIES]
)
def test_a_stream_writes_what_a_batch_returns(
    spark: SparkSession, numbers: DataFrame, name: str, tmp_path: Path
) -> None:
    watermark = written(numbers, name, tmp_path)
    rows = compare(spark, name, EVENTS, tmp_path / "output", watermark)
    assert exact(rows), rows


def test_a_row_that_is_missing_is_found(spark: SparkSession, numbers: DataFrame, tmp_path: Path) -> None:
    watermark = written(numbers, "q2", tmp_path)
    more = compare(spark, "q2", 2 * EVENTS, tmp_path / "output", watermark)
    assert more["missing"] > 0
    assert more["surplus"] == 0
    assert not exact(more)


def test_events_have_the_shares_of_the_definition(spark: SparkSession) -> None:
    register(spark.range(EVENTS).selectExpr("id AS n"))
    people, auctions, bids = (
        spark.sql(f"SELECT count(*), {columns} FROM {view}").collect()[0]
        for view, columns in (
            ("person", "min(id), max(id), count(DISTINCT id), count(DISTINCT state)"),
            (
                "auction",
                "min(id), max(id), count(DISTINCT id), avg(CAST(seller % 100 = 0 AS INT)), "
                "avg(unix_millis(expires) - unix_millis(dateTime))",
            ),
            (
                "bid",
                "avg(CAST(auction % 100 = 0 AS INT)), avg(CAST(bidder % 100 = 1 AS INT)), min(price), "
                "max(price), count(DISTINCT channel), avg(length(extra)), "
                "avg(CAST(channel LIKE 'channel-%' AS INT))",
            ),
        )
    )
    rounds = EVENTS // 50
    assert list(people) == [rounds, FIRST_ID, FIRST_ID + rounds - 1, rounds, 6]
    count, first, last, ids, hot_sellers, lengths_ms = auctions
    assert [count, first, last, ids] == [3 * rounds, FIRST_ID, FIRST_ID + 3 * rounds - 1, 3 * rounds]
    assert hot_sellers == pytest.approx(3 / 4, abs=0.05)
    # As long as it takes until 100 more auctions have begun.
    assert lengths_ms == pytest.approx(1_667, rel=0.05)
    count, hot_auctions, hot_bidders, least, most, channels, padding, other_channels = bids
    assert count == 46 * rounds
    assert hot_auctions == pytest.approx(1 / 2, abs=0.02)
    assert hot_bidders == pytest.approx(3 / 4, abs=0.02)
    assert 100 <= least < 200
    assert 50_000_000 < most <= 100_000_000
    assert channels > 4_000
    assert padding == pytest.approx(68, abs=1)
    assert other_channels == pytest.approx(1 / 2, abs=0.02)


def test_an_event_is_the_same_wherever_it_is_computed(spark: SparkSession) -> None:
    def rows(view: str, numbers: DataFrame) -> list[object]:
        register(numbers.selectExpr("id AS n"))
        return [*spark.sql(f"SELECT * FROM {view} ORDER BY dateTime").collect()]

    for view in ("person", "auction", "bid"):
        assert rows(view, spark.range(0, 400, 1, 1)) == rows(
            view, spark.range(200, 400, 1, 3).union(spark.range(0, 200, 1, 2))
        )


def test_waiting_changes_no_row(spark: SparkSession) -> None:
    numbers = spark.range(500).selectExpr("id AS n")
    register(numbers)
    rows = spark.sql("SELECT * FROM bid").collect()
    register(numbers, wait_us=400)
    assert spark.sql("SELECT * FROM bid").collect() == rows
