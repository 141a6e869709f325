"""Tests that checkpoints which plain Sparks have written go on with the same output after a conversion.

The archives in integration/old_checkpoints are of real earlier Sparks, with each stateful operator. Two
copies of each checkpoint go on over the same input: one untouched in plain Spark, the other one converted to
RocksDB and to another number of partitions. A conversion takes a number of a micro-batch that no sink sees.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from pyspark.sql import SparkSession

from integration.old_checkpoints.archives import Archive, archives, copy
from integration.old_checkpoints.queries import QUERIES
from integration.old_checkpoints.running import PARTITIONS, Batch, go_on
from integration.old_checkpoints.write import compile_programs
from integration.spark_minor import MOVES_STATE
from integration.streaming.driver import driver

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not MOVES_STATE, reason="this Spark cannot convert a checkpoint"),
]

_STATE_STORE = "spark.sql.streaming.stateStore"
FORMAT = f"{_STATE_STORE}.checkpointFormatVersion"
# Stores whose query has ended are closed soon: hundreds of them are opened.
CONF = {f"{_STATE_STORE}.maintenanceInterval": "5s"}
# More than before, fewer, and as many in the other store. With the first and the last one, the hash of no key
# does not lead to partition 0, where Spark looks for state without keys.
TARGETS = (8, 3, PARTITIONS, 5)
# One per kind of state, from the first Spark with the one store and from the last one with the other.
FIRST = {
    ("3.5", "hdfs"): (
        "aggregation_update",
        "session_window",
        "deduplication_within_watermark",
        "join_left_outer_format_2",
        "flat_groups_event_time_format_2",
    ),
    ("4.1", "rocksdb"): ("processor_timers", "join_inner_format_3"),
}
# What cannot be converted, and words of the reason.
REFUSED = {
    "aggregation_without_keys": "in 1 of 4 partitions, as one without keys has",
    "limit": "in 1 of 4 partitions, as one without keys has",
    "flat_groups_event_time_format_1": "too short a number, which RocksDB rejects",
    "map_groups_event_time_format_1": "too short a number, which RocksDB rejects",
}
# After a rewrite, also one of its own, Spark counts as rows what leads to a join's rows in this format.
# What Spark 4.0 counts of a map that expires, it does not count after one.
MISCOUNTED = [name for name in QUERIES if name.startswith("join_") and name.endswith("_format_3")]
MISCOUNTED += ["processor_lasting"]


def convert(spark: SparkSession, checkpoint: Path, partitions: int) -> None:
    """Convert a checkpoint to RocksDB, format 2, and this number of partitions."""
    jvm: Any = spark._jvm
    program = jvm.org.apache.spark.sql.elastic.OfflineCheckpoint
    program.rewrite(spark._jsparkSession, str(checkpoint), partitions, "rocksdb-2")


def refuse(reason: str, spark: SparkSession, checkpoint: Path, partitions: int) -> None:
    """Try to convert a checkpoint, which fails for this reason."""
    with pytest.raises(Exception, match=reason):
        convert(spark, checkpoint, partitions)


def uncounted(batches: list[Batch]) -> list[Batch]:
    """Return micro-batches without the numbers of rows in their state."""
    return [evolve(batch, state=[]) for batch in batches]


class Copies:
    """The unpacked archives, and copies of their checkpoints that go on in one Spark."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._copies = 0
        self._plain: dict[tuple[Archive, str], list[Batch]] = {}

    def go_on(
        self,
        archive: Archive,
        query: str,
        conf: dict[str, str],
        prepare: Callable[[SparkSession, Path], None] = lambda *_: None,
    ) -> tuple[Path, list[Batch]]:
        """Let a copy go on in a session with these settings; return it, and its micro-batches."""
        unpacked = self._folder / archive.file.name
        if not unpacked.exists():
            archive.unpack(unpacked)
        self._copies += 1
        place = self._folder / str(self._copies)
        checkpoint, source = place / "checkpoint", place / "in"
        copy(unpacked / query, checkpoint, source)
        session = self._spark.newSession()
        for key, value in conf.items():
            session.conf.set(key, value)
        prepare(session, checkpoint)
        return checkpoint, go_on(session, query, source, checkpoint)

    def plain(self, archive: Archive, query: str) -> list[Batch]:
        """Return the micro-batches in plain Spark."""
        if (archive, query) not in self._plain:
            self._plain[archive, query] = self.go_on(archive, query, {})[1]
        return self._plain[archive, query]


@contextmanager
def copies_in(folder: Path, conf: dict[str, str]) -> Iterator[Copies]:
    """Start a Spark with these settings, in which copies go on."""
    compile_programs(folder / "classes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)  # Python workers need one with pandas
        with driver(folder / "driver", [folder / "classes"]) as jvm, jvm.session({**CONF, **conf}) as spark:
            yield Copies(spark, folder)


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copies]:
    with copies_in(tmp_path_factory.mktemp("copies"), {}) as plain:
        yield plain


def cases() -> Iterator[Any]:
    """Yield each checkpoint with the number of partitions that it gets."""
    for archive in archives():
        minor = archive.spark.rsplit(".", 1)[0]
        for query in archive.queries:
            marks = () if query in FIRST.get((minor, archive.store), ()) else pytest.mark.slow
            target = TARGETS[list(QUERIES).index(query) % len(TARGETS)]
            yield pytest.param(archive, query, target, id=f"{minor}-{archive.store}-{query}", marks=marks)


def newest_settings(checkpoint: Path) -> dict[str, str]:
    """Return the settings that the checkpoint has with its last micro-batch."""
    last = max((path for path in (checkpoint / "offsets").iterdir() if path.name.isdigit()), key=_number)
    conf: dict[str, str] = json.loads(last.read_text().splitlines()[1])["conf"]
    return conf


def _number(path: Path) -> int:
    return int(path.name)


@pytest.mark.parametrize(("archive", "query", "partitions"), list(cases()))
def test_a_converted_one_goes_on_as_in_plain_spark(
    copies: Copies, archive: Archive, query: str, partitions: int
) -> None:
    expected = copies.plain(archive, query)
    assert any(batch.emitted for batch in expected)
    if query in REFUSED:
        # What is refused has not changed.
        _, found = copies.go_on(
            archive, query, {}, lambda session, made: refuse(REFUSED[query], session, made, partitions)
        )
        assert found == expected
        return
    checkpoint, found = copies.go_on(
        archive, query, {FORMAT: "2"}, lambda session, made: convert(session, made, partitions)
    )
    if query in MISCOUNTED:
        found, expected = uncounted(found), uncounted(expected)
    assert found == expected
    conf = newest_settings(checkpoint)
    assert conf["spark.sql.shuffle.partitions"] == str(partitions)
    assert conf[f"{_STATE_STORE}.providerClass"].endswith(".RocksDBStateStoreProvider")


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
def test_plain_spark_goes_on_alike_from_each_spark_and_store(copies: Copies, query: str) -> None:
    first, *others = [archive for archive in archives() if query in archive.queries]
    expected = uncounted(copies.plain(first, query))
    for archive in others:
        assert uncounted(copies.plain(archive, query)) == expected, archive
