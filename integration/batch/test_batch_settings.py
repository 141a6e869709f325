"""Tests that each setting of batch queries has its effect on real queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from integration.batch.plans import PATIENT, PLAIN, decisions, final_plan, rows, written
from integration.streaming.driver import PLUGIN, Driver
from integration.streaming.waiting import eventually
from spark_elastic.core.actions import Configure
from spark_elastic.core.events import ActionDone
from spark_elastic.runtime.entries import ActionsEntry, EventEntry, read_journal

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

BATCH = "spark.elastic.batch"
# With these, reading a few rows takes a few tasks, and a file of some lines is worth splitting.
SMALL = {
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "240k",
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": "240k",
    "spark.sql.files.openCostInBytes": "1000",
}
ROWS, KEYS, FILES = 40_000, 40_000, 3
BIG = 100_000
"""More bytes than anything but the shuffle of all rows has."""


def is_big(question: Any) -> bool:
    """Return whether a question is about the files, or about the shuffle of their rows."""
    bytes_of = [exchange.bytes for exchange in getattr(question, "exchanges", ())]
    return getattr(question, "bytes", 0) > BIG or any(
        (size if isinstance(size, int) else sum(size)) > BIG for size in bytes_of
    )


def counted(spark: SparkSession, files: Path) -> tuple[DataFrame, DataFrame]:
    """Return a query that shuffles the rows of the files, and a query that only reads them."""
    read = spark.read.schema("id LONG").csv(str(files))
    # Shuffled rows are larger than the files: several tasks read them, fewer partitions than Spark's hold
    # them.
    noise = [F.max(F.xxhash64("id", F.lit(n))).alias(f"noise{n}") for n in range(4)]
    return read.groupBy((F.col("id") % KEYS).alias("k")).agg(*noise), read


class Application:
    """An application that has run a scan, and a shuffle of the scanned rows."""

    def __init__(self, spark: SparkSession, files: Path, journal: Path) -> None:
        counts, read = counted(spark, files)
        assert len(rows(counts)) == KEYS
        (self.written,) = written(final_plan(counts))
        self.scanned = read.rdd.getNumPartitions()
        self._journal = journal
        eventually(
            lambda: self._answers().keys() >= {"InitialCount", "Ranges", "SplitSize"}, "the journal has all"
        )
        answers = self._answers()
        self.reasons = {kind: answer["record"]["reason"] for kind, answer in answers.items()}
        self.would_write = answers["InitialCount"]["partitions"]
        self.would_read = len(answers["Ranges"]["specs"] or ())

    def _answers(self) -> dict[str, Mapping[str, Any]]:
        entries = [entry for entry in decisions(self._journal) if is_big(entry.question)]
        return {type(entry.question).__name__: entry.answer for entry in entries}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, jvm: Driver) -> Path:
    folder = tmp_path_factory.mktemp("files") / "rows.csv"
    with jvm.session({}) as spark:
        spark.range(0, ROWS, 1, FILES).write.csv(str(folder))
    return folder


def base(journal: Path) -> dict[str, str]:
    return {**PLUGIN, **PLAIN, **PATIENT, **SMALL, "spark.elastic.journal.dir": str(journal)}


@contextmanager
def session(jvm: Driver, journal: Path, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """Start a session of an application with these settings, and wait until questions are answered."""
    with jvm.session({**base(journal), **conf}) as spark:

        def is_asked() -> bool:
            spark.range(9).groupBy((F.col("id") % 3).alias("k")).count().collect()
            return bool(decisions(journal))

        eventually(is_asked, "an answer", every_s=0.2)
        yield spark


def application(jvm: Driver, journal: Path, files: Path, conf: Mapping[str, str]) -> Application:
    """Return the results of an application with these settings."""
    with session(jvm, journal, conf) as spark:
        return Application(spark, files, journal)


@pytest.fixture(scope="module")
def default(jvm: Driver, files: Path, tmp_path_factory: pytest.TempPathFactory) -> Application:
    found = application(jvm, tmp_path_factory.mktemp("journal"), files, {})
    # No test below may pass by chance.
    assert found.written == found.would_write not in (3, 7, 200)
    assert found.would_read > 3
    assert found.scanned == 2
    return found


def test_advice_alone_changes_nothing_and_tells_what_it_would(
    jvm: Driver, default: Application, files: Path, tmp_path: Path
) -> None:
    found = application(jvm, tmp_path, files, {"spark.elastic.adviseOnly": "true"})
    assert (found.written, found.scanned) == (200, FILES)
    assert found.would_write == default.would_write
    assert found.would_read > 0


def test_the_least_parallelism_is_kept(
    jvm: Driver, default: Application, files: Path, tmp_path: Path
) -> None:
    least = default.would_write * 2 + 1
    found = application(jvm, tmp_path, files, {f"{BATCH}.autoParallelism.minParallelism": str(least)})
    assert min(found.written, found.would_read) >= least > default.would_read


def test_the_most_parallelism_is_kept(jvm: Driver, default: Application, files: Path, tmp_path: Path) -> None:
    conf = {f"{BATCH}.autoParallelism.maxParallelism": "3"}
    found = application(jvm, tmp_path, files, conf)
    assert (found.written, found.would_read) == (3, 3)


@pytest.mark.parametrize(
    ("meaning", "number", "expected"), [("fixed", 7, {7}), ("upperBound", 3, {3}), ("ignore", 3, set())]
)
def test_the_users_own_number_means_what_he_says(
    jvm: Driver,
    default: Application,
    files: Path,
    tmp_path: Path,
    meaning: str,
    number: int,
    expected: set[int],
) -> None:
    conf = {f"{BATCH}.explicitParallelism": meaning, "spark.sql.shuffle.partitions": str(number)}
    found = application(jvm, tmp_path, files, conf)
    assert found.written in (expected or {default.written})
    assert (found.reasons["InitialCount"] == "initial_fixed") == (meaning == "fixed")


def test_the_number_of_partitions_alone_can_be_left_to_spark(
    jvm: Driver, default: Application, files: Path, tmp_path: Path
) -> None:
    found = application(jvm, tmp_path, files, {f"{BATCH}.initialCount.enabled": "false"})
    assert (found.written, found.scanned, found.reasons["InitialCount"]) == (200, 2, "initial_off")
    assert found.would_read > 0


def test_the_ranges_alone_can_be_left_to_spark(
    jvm: Driver, default: Application, files: Path, tmp_path: Path
) -> None:
    found = application(jvm, tmp_path, files, {f"{BATCH}.ranges.enabled": "false"})
    assert (found.written, found.scanned) == (default.written, 2)
    assert (found.reasons["Ranges"], found.would_read) == ("ranges_off", 0)


def test_the_sources_alone_can_be_left_to_spark(
    jvm: Driver, default: Application, files: Path, tmp_path: Path
) -> None:
    found = application(jvm, tmp_path, files, {f"{BATCH}.sources.enabled": "false"})
    assert (found.written, found.scanned) == (default.written, FILES)
    assert found.reasons["SplitSize"] == "split_off"


def is_configured(journal: Path) -> bool:
    """Return whether the driver has applied the settings."""
    entries = [entry for file in journal.glob("*.jsonl") for _, entry in read_journal(file)]
    told = {
        action.id
        for entry in entries
        if isinstance(entry, ActionsEntry)
        for action in entry.actions
        if isinstance(action, Configure)
    }
    events = [entry.event for entry in entries if isinstance(entry, EventEntry)]
    return any(isinstance(event, ActionDone) and event.action in told for event in events)


def test_all_of_it_can_be_left_to_spark(
    jvm: Driver, default: Application, files: Path, tmp_path: Path
) -> None:
    conf = {**base(tmp_path), f"{BATCH}.autoParallelism.enabled": "false"}
    with jvm.session(conf) as spark:
        eventually(lambda: is_configured(tmp_path), "the settings have come to the driver")
        counts, read = counted(spark, files)
        assert len(rows(counts)) == KEYS
        assert written(final_plan(counts)) == [200]
        assert read.rdd.getNumPartitions() == FILES
    assert decisions(tmp_path) == []
