"""What has happened lately as series for a chart: micro-batches of each query, slots, lost executors.

Everything is bounded: a thousand queries take about 25 MB.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Container, Sequence

from attrs import define, field, frozen

from spark_elastic.core.events import Event, ExecutorAdded, ExecutorRemoved, QueryProgress, Snapshot

BATCHES_KEPT = 240
"""Micro-batches of one query."""

SLOTS_KEPT = 500
"""Changes of the number of slots."""

LOST_KEPT = 200
"""Executors that have gone."""

# Kept packed: as objects they would take four times the room.
_BATCH = struct.Struct("<qqqd")


@frozen(kw_only=True)
class Batch:
    """One micro-batch: when it began (epoch ms), how long it took, with how many partitions."""

    at: int
    duration_ms: int
    partitions: int
    input_rows_per_second: float


@define
class Timeline:
    """The series; they are written by one thread, and may be read by others meanwhile."""

    _batches: dict[str, deque[bytes]] = field(factory=dict)
    _slots: deque[tuple[int, int]] = field(factory=lambda: deque(maxlen=SLOTS_KEPT))
    _lost: deque[tuple[int, str, str]] = field(factory=lambda: deque(maxlen=LOST_KEPT))
    # Spark says it again and again of one that is lost, and of those that never came.
    _here: set[str] = field(factory=set)

    def note(self, event: Event, slots: int) -> None:
        """Take in an event, and how many slots there are after it."""
        if isinstance(event, QueryProgress):
            kept = self._batches.setdefault(event.query, deque(maxlen=BATCHES_KEPT))
            rate = event.input_rows_per_second
            kept.append(_BATCH.pack(event.started, event.duration_ms, event.partitions, rate))
        elif isinstance(event, Snapshot):
            self._here = {executor.executor for executor in event.executors}
        elif isinstance(event, ExecutorAdded):
            self._here.add(event.executor)
        elif isinstance(event, ExecutorRemoved) and event.executor in self._here:
            self._here.remove(event.executor)
            self._lost.append((event.at, event.executor, event.reason))
        if not self._slots or self._slots[-1][1] != slots:
            self._slots.append((event.at, slots))

    def keep_only(self, queries: Container[str]) -> None:
        """Forget the batches of all other queries."""
        for query in [query for query in self._batches if query not in queries]:
            del self._batches[query]

    def batches(self, query: str, after: int = 0) -> Sequence[Batch]:
        """Return the micro-batches of a query that began after a time, the newest last."""
        kept = self._batches.get(query)
        found = (_BATCH.unpack(packed) for packed in (() if kept is None else kept.copy()))
        return [
            Batch(at=at, duration_ms=took, partitions=partitions, input_rows_per_second=rate)
            for at, took, partitions, rate in found
            if at > after
        ]

    def slots(self, after: int = 0) -> Sequence[tuple[int, int]]:
        """Return when the slots changed after a time, and how many there were then, the newest last."""
        return [(at, slots) for at, slots in self._slots.copy() if at > after]

    def lost(self, after: int = 0) -> Sequence[tuple[int, str, str]]:
        """Return when an executor went after a time, which, and why, the newest last."""
        return [(at, executor, reason) for at, executor, reason in self._lost.copy() if at > after]
