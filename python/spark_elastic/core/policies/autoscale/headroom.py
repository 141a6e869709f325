"""How much room is left above what comes in: as much as that varies, and as it grows until executors come.

A constant would be too much for a steady load and too little for one that leaps. What counts is how far the
rates of the last micro-batches lie from the line through them, and where that line leads.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from attrs import frozen

_LEAST, _MOST = 0.08, 0.25
_DEVIATIONS = 2.0
_ENOUGH = 6
_LEAP = 0.4
"""A rate that changes by more than so much of itself from one micro-batch to the next has leapt."""
_SURE = 3.0
"""A slope counts from so many times its standard error on: less is noise."""


@frozen(kw_only=True)
class Variation:
    """How rates vary: `spread` is the standard deviation as a part of the rate, from 0 on.

    `growth` is what the rate gains (negative: loses) for each ms, as a part of it; 0 where that is not sure.
    """

    spread: float = 0.0
    growth: float = 0.0

    @property
    def load(self) -> float:
        """The load that leaves so much room that all but the rarest micro-batches are in time (0 to 1)."""
        return 1 / (1 + min(_MOST, max(_LEAST, _DEVIATIONS * self.spread)))


def variation(rates: Sequence[float], times: Sequence[int]) -> Variation:
    """Lay a line through rates (rows per ms) at `times` (ms); too few of them tell nothing."""
    begin = _after_last_leap(rates)
    rates, times = rates[begin:], times[begin:]
    count = len(rates)
    mean = sum(rates) / count if count else 0.0
    if count < _ENOUGH or mean <= 0:
        return Variation()
    middle = sum(times) / count
    apart = [time - middle for time in times]
    squares = sum(gap * gap for gap in apart)
    slope = sum(gap * rate for gap, rate in zip(apart, rates, strict=True)) / squares if squares else 0.0
    left = sum((rate - mean - slope * gap) ** 2 for gap, rate in zip(apart, rates, strict=True))
    deviation = sqrt(left / (count - 2))
    sure = squares > 0 and abs(slope) * sqrt(squares) > _SURE * deviation
    return Variation(spread=deviation / mean, growth=slope / mean if sure else 0.0)


def _after_last_leap(rates: Sequence[float]) -> int:
    """Return where the rates begin that belong together: one that leaps tells nothing of how it varies."""
    for place in range(len(rates) - 1, 0, -1):
        before, after = rates[place - 1], rates[place]
        if abs(after - before) > _LEAP * max(before, after):
            return place
    return 0
