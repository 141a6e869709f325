"""Recent history as series for charts: micro-batches of each query, slots, lost executors.

All series are bounded: those of a thousand queries take about 25 MB.
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
    QueryProgress,
    Snapshot,
)

BATCHES_KEPT = 240
"""Number of micro-batches kept for each query."""

SLOTS_KEPT = 500
"""Number of changes of the slot count that are kept."""

LOST_KEPT = 200
"""Number of lost executors that are kept."""

# Packed, because objects would take four times the memory.
_BATCH = struct.Struct("<qqqd")


@frozen(kw_only=True)
class Batch:
    """One micro-batch: its start (epoch ms), its duration, its partitions and its input rate."""

    at: int
    duration_ms: int
    partitions: int
    input_rows_per_second: float


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
    _slots: deque[tuple[int, int]] = field(factory=lambda: deque(maxlen=SLOTS_KEPT))
    _lost: deque[Departure] = field(factory=lambda: deque(maxlen=LOST_KEPT))
    # Spark reports the loss of an executor repeatedly, and also that of executors which never arrived.
    _here: set[str] = field(factory=set)
    _leaving: set[str] = field(factory=set)

    def note(self, event: Event, slots: int) -> None:
        """Record an event, and the number of slots after it."""
        if isinstance(event, QueryProgress):
            kept = self._batches.setdefault(event.query, deque(maxlen=BATCHES_KEPT))
            rate = event.input_rows_per_second
            kept.append(_BATCH.pack(event.started, event.duration_ms, event.partitions, rate))
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
        if not self._slots or self._slots[-1][1] != slots:
            self._slots.append((event.at, slots))

    def keep_only(self, queries: Container[str]) -> None:
        """Remove the batches of all other queries."""
        for query in [query for query in self._batches if query not in queries]:
            del self._batches[query]

    def batches(self, query: str, after: int = 0) -> Sequence[Batch]:
        """Return the micro-batches of a query that started after `after` (epoch ms), newest last."""
        kept = self._batches.get(query)
        found = (_BATCH.unpack(packed) for packed in (() if kept is None else kept.copy()))
        return [
            Batch(at=at, duration_ms=took, partitions=partitions, input_rows_per_second=rate)
            for at, took, partitions, rate in found
            if at > after
        ]

    def slots(self, after: int = 0) -> Sequence[tuple[int, int]]:
        """Return the changes of the slot count after `after` (epoch ms) as (time, slots), newest last."""
        return [(at, slots) for at, slots in self._slots.copy() if at > after]

    def lost(self, after: int = 0) -> Sequence[Departure]:
        """Return the executors that went after `after` (epoch ms), newest last."""
        return [one for one in self._lost.copy() if one.at > after]
