"""Figures of a run: how late each event was read, which rates the query kept up with, and what it cost.

A second's events are written in its middle; how late they are is the time from then to the end of the
micro-batch that has the last of them in all places where the query reads them. In Flink it is the end of the
first checkpoint that has them, with which the files of the output are complete. For a query with windows this
is not the time until a window's result, which comes with the watermark.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from attrs import frozen

from integration.bench.nexmark.schedule import Schedule
from spark_elastic_lab.simulator.record import Steps

WRITTEN_AT_MS = 500
"""When in a second its events are written."""
IN_TIME_MS = 10_000
"""A query keeps up with a rate if 99 % of the events of its step's second half were read within this time."""


@frozen
class Reading:
    """A micro-batch or checkpoint that ended at `ended` (epoch ms), and the events in a row it has read."""

    ended: int
    covered: int


@frozen
class Snapshot:
    """The `ranges` of numbers (first, end) that a task has read between its last snapshot and a checkpoint.

    After a restart of the job there are other tasks.
    """

    checkpoint: int
    task: str
    ranges: Sequence[tuple[int, int]]


@frozen
class Late:
    """A number of `events` that were read `ms` after they were written."""

    ms: int
    events: int


def covered(files: Mapping[int, str], logged: Mapping[str, int]) -> list[int]:
    """Return how many events in a row a source has read up to each place in its log.

    `files` has the file of each number of events in a row, as it was written, and `logged` the place in the
    source's log of each file that was read. A file that comes later in the log than the next one counts from
    there on.
    """
    found = [0] * (max(logged.values(), default=-1) + 1)
    latest = 0
    for events in sorted(files):
        if files[events] not in logged:
            break
        latest = max(latest, logged[files[events]])
        found[latest] = events
    return list(accumulate(found, max))


def readings(
    reports: Iterable[tuple[int, Sequence[int | None]]], sources: Sequence[Sequence[int]]
) -> list[Reading]:
    """Return what has been read by the end of each micro-batch.

    A report has the end of a micro-batch (epoch ms) and, for each source, the place in its log up to which it
    was read, None if nothing was. `sources` has what `covered` returns for each of them.
    """
    found = []
    for ended, places in reports:
        read = [0 if place is None else log[place] for place, log in zip(places, sources, strict=True)]
        found.append(Reading(ended, min(read)))
    return found


def committed(snapshots: Collection[Snapshot], ended: Mapping[int, int]) -> list[Reading]:
    """Return what has been read by each checkpoint that was completed; `ended` has their times (epoch ms).

    A checkpoint has all that its tasks have read, also before a checkpoint that was given up, and what the
    checkpoint has with which they began.
    """
    ends: dict[int, int] = {}
    found, read = [], 0
    for checkpoint in sorted(ended):
        tasks = {one.task for one in snapshots if one.checkpoint == checkpoint}
        for one in snapshots:
            if one.checkpoint <= checkpoint and one.task in tasks:
                ends.update(one.ranges)
        while read in ends:
            read = ends[read]
        found.append(Reading(ended[checkpoint], read))
    return found


def lateness(schedule: Schedule, begin: int, read: Sequence[Reading], seconds: range) -> list[Late]:
    """Return how late the events of these seconds were, for a load that began at `begin` (epoch ms).

    Raises ValueError if not all of them were read.
    """
    until = schedule.arrived
    by_then = [one.covered for one in read]
    found = []
    for second in seconds:
        events = until[second] - (until[second - 1] if second else 0)
        if not events:
            continue
        place = bisect_left(by_then, until[second])
        if place == len(read):
            raise ValueError(f"the events of second {second} were not read")
        written = begin + second * 1_000 + WRITTEN_AT_MS
        found.append(Late(max(0, read[place].ended - written), events))
    return found


def percentile(late: Iterable[Late], percent: float) -> int:
    """Return the time (ms) within which this share of the events was read; 0 without events."""
    ordered = sorted(late, key=lambda one: one.ms)
    left = math.ceil(sum(one.events for one in ordered) * percent / 100)
    for one in ordered:
        left -= one.events
        if left <= 0:
            return one.ms
    return 0


def sustained(schedule: Schedule, begin: int, read: Sequence[Reading]) -> int:
    """Return the highest rate (events/s) with which the query kept up in each of its steps; 0 if none."""
    kept: dict[int, bool] = {}
    for rate, seconds in schedule.steps:
        second_half = lateness(schedule, begin, read, seconds[len(seconds) // 2 :])
        kept[rate] = kept.get(rate, True) and percentile(second_half, 99) <= IN_TIME_MS
    return max((rate for rate, all_kept in kept.items() if all_kept), default=0)


def figures(
    schedule: Schedule, begin: int, read: Sequence[Reading], batch_ms: Sequence[int], executors: Steps
) -> dict[str, Any]:
    """Return the figures of the measured seconds.

    `batch_ms` are the durations of their micro-batches, or of their checkpoints, `executors` their number by
    time (epoch ms).
    """
    late = lateness(schedule, begin, read, schedule.measured)
    since, end = (begin + second * 1_000 for second in (schedule.measured.start, schedule.measured.stop))
    hours = (executors.total(end) - executors.total(since)) / 3_600_000
    return {
        "sustained_per_s": sustained(schedule, begin, read),
        "late_ms": {"p50": percentile(late, 50), "p99": percentile(late, 99), "max": percentile(late, 100)},
        "batch_ms": {
            "p50": percentile((Late(ms, 1) for ms in batch_ms), 50),
            "p99": percentile((Late(ms, 1) for ms in batch_ms), 99),
        },
        "executor_hours": round(hours, 4),
        "executors": {
            "mean": round(hours * 3_600_000 / (end - since), 2),
            "most": max(executors.at(moment) for moment in (since, *_within(executors, since, end))),
        },
    }


def _within(steps: Steps, since: int, end: int) -> list[int]:
    return [at for at in steps.times if since <= at < end]


def compared(variants: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return lateness and executor-hours as shares of plain Spark's, if it ran."""
    plain = variants.get("plain")
    if plain is None or not plain["late_ms"]["p99"] or not plain["executor_hours"]:
        return {}
    return {
        name: {
            "late_p99": round(one["late_ms"]["p99"] / plain["late_ms"]["p99"], 3),
            "executor_hours": round(one["executor_hours"] / plain["executor_hours"], 3),
        }
        for name, one in variants.items()
        if name != "plain"
    }
