"""The micro-batches of a running query, read from the progress reports that its application writes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import attrs

from spark_elastic_lab.advice.told import moment


@attrs.frozen(kw_only=True)
class Batch:
    """One micro-batch with input; times in epoch ms."""

    number: int
    started: int
    duration_ms: int
    partitions: int | None
    state_bytes: int

    @property
    def output(self) -> int:
        """The time at which its output was complete."""
        return self.started + self.duration_ms


def batches_in(lines: Iterable[str]) -> list[Batch]:
    """Return the batches that an application's progress lines report, in order."""
    reports = [json.loads(line) for line in lines]
    return [_batch(report) for report in reports if report["numInputRows"] > 0]


@attrs.frozen(kw_only=True)
class Gap:
    """The time between two successive outputs: the wait before the later micro-batch, and that batch."""

    before_ms: int
    batch_ms: int

    @property
    def whole_ms(self) -> int:
        """Both times together."""
        return self.before_ms + self.batch_ms


def longest_gap(batches: Sequence[Batch], begin: int, end: int) -> Gap:
    """Return the longest gap in the output that ends in `begin`..`end` (epoch ms); 0 ms if none does."""
    gaps = (
        Gap(before_ms=later.started - earlier.output, batch_ms=later.duration_ms)
        for earlier, later in pairwise(batches)
        if begin <= later.output <= end
    )
    return max(gaps, key=lambda gap: gap.whole_ms, default=Gap(before_ms=0, batch_ms=0))


def missed_triggers(batches: Sequence[Batch], begin: int, end: int, trigger_ms: int) -> int:
    """Return the number of trigger times in `begin`..`end` (epoch ms) at which no batch could start."""
    # Spark's triggers fall on multiples of the interval; the first batch of a run starts at once.
    ticks = [batch.started // trigger_ms for batch in batches if begin <= batch.started <= end]
    return sum(max(0, b - a - 1) for a, b in pairwise(ticks))


def first_output_after(batches: Iterable[Batch], moment: int) -> int | None:
    """Return the end of the first batch that *started* at or after `moment`, or None (all epoch ms)."""
    return next((batch.output for batch in batches if batch.started >= moment), None)


def _batch(report: dict[str, Any]) -> Batch:
    operators = report["stateOperators"]
    return Batch(
        number=report["batchId"],
        started=moment(report["timestamp"]),
        duration_ms=report["durationMs"]["triggerExecution"],
        partitions=operators[0]["numShufflePartitions"] if operators else None,
        state_bytes=sum(_state_bytes(operator) for operator in operators),
    )


def _state_bytes(operator: dict[str, Any]) -> int:
    # RocksDB's reported memory is only its caches; its state is in its files.
    size: int = operator["customMetrics"].get("rocksdbSstFileSize", operator["memoryUsedBytes"])
    return size
