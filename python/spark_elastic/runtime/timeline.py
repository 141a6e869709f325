"""Recent history as series for charts: micro-batches of each query, slots and executors, lost executors.

All series are bounded: those of a thousand queries take about 30 MB.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Container, Sequence

from attrs import define, field, frozen

from spark_elastic.core.events import (
    Event,
    ExecutorAdded,
    ExecutorDecommissioning,
    ExecutorRemoved,
    QueryIdle,
    QueryProgress,
    Snapshot,
)

BATCHES_KEPT = 240
"""Number of micro-batches kept for each query."""

SLOTS_KEPT = 500
"""Number of changes of the slots and executors that are kept."""

LOST_KEPT = 200
"""Number of lost executors that are kept."""

# Packed, because objects would take four times the memory.
_BATCH = struct.Struct("<qqqdq")


@frozen(kw_only=True)
class Batch:
    """One micro-batch: its start (epoch ms), its duration, its partitions, its input rate and its lag.

    The lag is an estimate of how long the oldest unread row had waited when the micro-batch ended: since the
    one before began or the query was idle, and the time in which what is still unread has arrived.
    """

    at: int
    duration_ms: int
    partitions: int
    input_rows_per_second: float
    lag_ms: int


@frozen(kw_only=True)
class Capacity:
    """What there is at one moment, and the slots that all queries want; None: one wants all slots."""

    slots: int
    executors: int
    cores: int
    wanted: int | None


@frozen(kw_only=True)
class Usage:
    """The time for which executors, and their cores, have been there since `since` (epoch ms)."""

    since: int
    executor_ms: int = 0
    core_ms: int = 0


@frozen(kw_only=True)
class Departure:
    """An executor that is gone since `at` (epoch ms); a `released` one went as intended."""

    at: int
    executor: str
    reason: str
    released: bool


# How Spark puts it that the driver asked for the end of an executor.
_KILLED = "Executor killed by driver"


@define
class Timeline:
    """The series; one thread writes them, while others may read them."""

    _batches: dict[str, deque[bytes]] = field(factory=dict)
    # Since when rows of a query may have been waiting for its next micro-batch.
    _since: dict[str, int] = field(factory=dict)
    _capacity: deque[tuple[int, Capacity]] = field(factory=lambda: deque(maxlen=SLOTS_KEPT))
    # The usage up to a time, and the capacity that there has been since.
    _used: tuple[int, Usage] | None = None
    _lost: deque[Departure] = field(factory=lambda: deque(maxlen=LOST_KEPT))
    # Spark reports the loss of an executor repeatedly, and also that of executors which never arrived.
    _here: set[str] = field(factory=set)
    _leaving: set[str] = field(factory=set)

    def note(self, event: Event) -> None:
        """Record an event."""
        if isinstance(event, QueryProgress):
            kept = self._batches.setdefault(event.query, deque(maxlen=BATCHES_KEPT))
            rate, lag = event.input_rows_per_second, self._lag_ms(event)
            kept.append(_BATCH.pack(event.started, event.duration_ms, event.partitions, rate, lag))
            self._since[event.query] = event.started
        elif isinstance(event, QueryIdle):
            self._since[event.query] = event.at
        elif isinstance(event, Snapshot):
            self._here = {executor.executor for executor in event.executors}
            self._leaving = {executor.executor for executor in event.executors if executor.decommissioning}
        elif isinstance(event, ExecutorAdded):
            self._here.add(event.executor)
        elif isinstance(event, ExecutorDecommissioning):
            self._leaving.add(event.executor)
        elif isinstance(event, ExecutorRemoved) and event.executor in self._here:
            self._here.remove(event.executor)
            released = event.executor in self._leaving or event.reason.startswith(_KILLED)
            self._leaving.discard(event.executor)
            self._lost.append(
                Departure(at=event.at, executor=event.executor, reason=event.reason, released=released)
            )

    def _lag_ms(self, event: QueryProgress) -> int:
        if event.input_rows <= 0:
            return 0
        waited = max(0, event.started - self._since.get(event.query, event.started)) + event.duration_ms
        behind, rate = event.records_behind or 0, event.input_rows_per_second
        return waited + (round(behind * 1_000 / rate) if rate > 0 else 0)

    def has(self, at: int, capacity: Capacity) -> None:
        """Record what there is since `at` (epoch ms), and count what there was until then as used."""
        before, used = self._used or (at, Usage(since=at))
        if self._capacity:
            last, ms = self._capacity[-1][1], max(0, at - before)
            used = Usage(
                since=used.since,
                executor_ms=used.executor_ms + last.executors * ms,
                core_ms=used.core_ms + last.cores * ms,
            )
        self._used = max(before, at), used
        if not self._capacity or self._capacity[-1][1] != capacity:
            self._capacity.append((at, capacity))

    def keep_only(self, queries: Container[str]) -> None:
        """Remove the batches of all other queries."""
        for kept in (self._batches, self._since):
            for query in [query for query in kept if query not in queries]:
                del kept[query]

    @property
    def usage(self) -> Usage:
        """What has been used up to the last call of `has`. Raises AssertionError before the first."""
        assert self._used is not None
        return self._used[1]

    def batches(self, query: str, after: int = 0, ended_after: int = 0) -> Sequence[Batch]:
        """Return the micro-batches of a query, newest last: those that started, or ended, after epoch ms."""
        kept = self._batches.get(query)
        found = (_BATCH.unpack(packed) for packed in (() if kept is None else kept.copy()))
        return [
            Batch(at=at, duration_ms=took, partitions=partitions, input_rows_per_second=rate, lag_ms=lag)
            for at, took, partitions, rate, lag in found
            if at > after and at + took > ended_after
        ]

    def last_lag_ms(self, query: str) -> int:
        """Return the lag of a query's last micro-batch, -1 without one."""
        kept = self._batches.get(query)
        return int(_BATCH.unpack(kept[-1])[-1]) if kept else -1

    def slots(self, after: int = 0) -> Sequence[tuple[int, int]]:
        """Return the changes of the slot count after `after` (epoch ms) as (time, slots), newest last."""
        there = [(at, found.slots) for at, found in self._capacity.copy()]
        before = [None, *(slots for _, slots in there)]
        return [
            (at, slots)
            for (at, slots), last in zip(there, before, strict=False)
            if slots != last and at > after
        ]

    def capacity(self, after: int = 0) -> Sequence[tuple[int, Capacity]]:
        """Return the changes of what there is after `after` (epoch ms) with their times, newest last."""
        return [(at, found) for at, found in self._capacity.copy() if at > after]

    def lost(self, after: int = 0) -> Sequence[Departure]:
        """Return the executors that went after `after` (epoch ms), newest last."""
        return [one for one in self._lost.copy() if one.at > after]
