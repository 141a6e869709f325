"""The trigger interval of a query, which an event log does not contain, from when its micro-batches began.

Spark begins a micro-batch at a whole multiple of the interval, unless the one before has overrun it. Without
an interval it begins as soon as there is data, at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from attrs import frozen

from spark_elastic_lab.advice.told import MicroBatch

Known = Literal["given", "found", "unknown"]

_S, _MIN = 1_000, 60_000
_CANDIDATES = (
    *(ms for ms in (100, 200, 250, 300, 400, 500, 750, 1_500, 2_500)),
    *(s * _S for s in (*range(1, 61), 90)),
    *(m * _MIN for m in (2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60, 120, 240, 360, 720, 1_440)),
)
_LATE_MS = 60
"""A micro-batch that begins on time does so within this (ms), or a tenth of the interval if that is less."""
_WAITED_MS = 20
_FEWEST = 4
_FIT = 0.85


@frozen
class Trigger:
    """The interval (ms), 0 if micro-batches begin as fast as they can; `known` says how it is known.

    `fit` is the share of the micro-batches that began where the interval says, of the `waited` that were not
    held up by the one before.
    """

    interval_ms: int
    known: Known
    fit: float = 0.0
    waited: int = 0


def find_trigger(batches: Sequence[MicroBatch]) -> Trigger:
    """Return the trigger that explains the starts of micro-batches.

    It is unknown if too few of them have waited for it.
    """
    starts = [
        after.started
        for before, after in pairwise(batches)
        if before.run == after.run and after.started - before.started - before.took_ms > _WAITED_MS
    ]
    if len(starts) < _FEWEST:
        return Trigger(0, "unknown", waited=len(starts))
    for interval in sorted(_CANDIDATES, reverse=True):
        on_time = min(_LATE_MS, interval // 10)
        fit = sum(start % interval <= on_time for start in starts) / len(starts)
        if fit >= _FIT:
            return Trigger(interval, "found", fit, len(starts))
    return Trigger(0, "found", 1.0, len(starts))


def missed(batches: Sequence[MicroBatch], interval_ms: int) -> tuple[int, int]:
    """Return how many triggers passed while a micro-batch ran, and how many there were."""
    if not interval_ms or not batches:
        return 0, 0
    passed = [(one.started + one.took_ms) // interval_ms - one.started // interval_ms for one in batches]
    return sum(passed), len(batches) + sum(max(0, count - 1) for count in passed)
