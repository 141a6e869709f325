"""Runs the queries: over the first files when a checkpoint is written, over later ones when it goes on."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from integration.old_checkpoints.queries import QUERIES, Source

WRITTEN_FILES = 3
CONTINUED_FILES = 2
PARTITIONS = 4
"""The number of partitions of each checkpoint."""

_ROWS = 150
_START_S = 1_000_000
_FILE_S = 25
_LATE_S = 200
_SNAPSHOT_S = 20.0
_OLDEST_FILE_S = 1_700_000_000


def _size(rows: list[str]) -> str:
    return f"{len(rows)} rows"


@frozen
class Batch:
    """What a micro-batch read and emitted; the rows as sorted texts.

    `watermark` is that with which it ran, `state` the number of rows that each operator has kept.
    """

    input_rows: int
    watermark: str | None
    emitted: list[str] = field(repr=_size)
    state: list[int]


def put(folder: Path, number: int) -> None:
    """Put an input file in; it has the same rows each time, some of them late, some without key or name."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(_row(n)) for n in range(number * _ROWS, (number + 1) * _ROWS)]
    hidden = folder / f".{number}.new"
    hidden.write_text("\n".join(lines) + "\n")
    # Spark reads files by their age, and ignores those much older than the newest one that it has read.
    os.utime(hidden, (_OLDEST_FILE_S + number,) * 2)
    os.replace(hidden, folder / f"{number:04d}.json")


def _row(n: int) -> dict[str, Any]:
    seconds = _START_S + n // _ROWS * _FILE_S + n * 13 % (_FILE_S + 10)
    return {
        "key": n * 37 % 307,
        "name": None if n % 41 == 0 else f"name {n * 53 % 211}",
        "value": n,
        "seconds": seconds - (_LATE_S if n % 29 == 28 else 0),
    }


def write(spark: SparkSession, name: str, folder: Path, checkpoint: Path) -> None:
    """Write the checkpoint of a query that has read the first files from a folder, one after the other."""
    query = QUERIES[name]
    running: StreamingQuery | None = None
    trigger = {"once": True} if query.once else {"processingTime": "0 seconds"}
    for number in range(WRITTEN_FILES):
        put(folder, number)
        running = running or _start(spark, name, folder, checkpoint, _ignore, trigger)
        if query.once:
            running.awaitTermination()
            running = None
        else:
            running.processAllAvailable()
    if running is not None:
        if query.snapshots:
            _await_snapshots(checkpoint)
        running.stop()


def _await_snapshots(checkpoint: Path) -> None:
    """Wait until Spark has written a snapshot of a partition's state. Raises TimeoutError."""
    end = time.monotonic() + _SNAPSHOT_S
    while not any(path.suffix in (".snapshot", ".zip") for path in checkpoint.glob("state/**/*")):
        if time.monotonic() > end:
            raise TimeoutError(f"no snapshot in {checkpoint.name}")
        time.sleep(0.1)


def go_on(spark: SparkSession, name: str, folder: Path, checkpoint: Path) -> list[Batch]:
    """Let a query go on over the later files, in any folder; return its micro-batches."""
    emitted: dict[int, list[str]] = {}

    def keep(batch: DataFrame, number: int) -> None:
        emitted[number] = sorted(repr(tuple(row)) for row in batch.collect())

    for number in range(WRITTEN_FILES):
        put(folder, number)
    progress: dict[int, Any] = {}
    once = QUERIES[name].once
    for number in range(WRITTEN_FILES, WRITTEN_FILES + CONTINUED_FILES):
        put(folder, number)
        if once:
            progress |= _end(_start(spark, name, folder, checkpoint, keep, {"once": True}))
    if not once:
        progress |= _end(_start(spark, name, folder, checkpoint, keep, {"availableNow": True}))
    return [
        Batch(
            input_rows=progress[number]["numInputRows"],
            watermark=progress[number]["eventTime"].get("watermark"),
            emitted=rows,
            state=[operator["numRowsTotal"] for operator in progress[number]["stateOperators"]],
        )
        for number, rows in sorted(emitted.items())
    ]


def _start(
    spark: SparkSession,
    name: str,
    folder: Path,
    checkpoint: Path,
    sink: Callable[[DataFrame, int], None],
    trigger: Mapping[str, Any],
) -> StreamingQuery:
    query = QUERIES[name]
    writer = query.build(Source(spark, folder)).writeStream.outputMode(query.mode).foreachBatch(sink)
    return writer.trigger(**trigger).option("checkpointLocation", str(checkpoint)).start()


def _end(query: StreamingQuery) -> dict[int, Any]:
    """Wait until a query has ended; return the progress of its micro-batches."""
    query.awaitTermination()
    return {p["batchId"]: p for p in query.recentProgress}


def _ignore(batch: DataFrame, _: int) -> None:
    batch.collect()
