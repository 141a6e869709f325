"""How much room is left above what comes in: as much as that varies, and as it grows until executors come.

A constant would be too much for a steady load and too little for one that leaps. What counts is how far the
rates of the last micro-batches lie from the line through them, and where that line leads.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from operator import mul

from attrs import frozen

_LEAST, _MOST = 0.08, 0.25
_DEVIATIONS = 2.0
_ENOUGH = 6
_NEAR = 0.6
"""A rate that is less than so much of the one before it, or of the one after it, has leapt."""
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
    apart, off = [time - middle for time in times], [rate - mean for rate in rates]
    squares = sum(map(mul, apart, apart))
    slope = sum(map(mul, apart, off)) / squares if squares else 0.0
    left = max(0.0, sum(map(mul, off, off)) - slope * slope * squares)
    deviation = sqrt(left / (count - 2))
    sure = squares > 0 and abs(slope) * sqrt(squares) > _SURE * deviation
    return Variation(spread=deviation / mean, growth=slope / mean if sure else 0.0)


def _after_last_leap(rates: Sequence[float]) -> int:
    """Return where the rates begin that belong together: one that leaps tells nothing of how it varies."""
    for place in range(len(rates) - 1, 0, -1):
        before, after = rates[place - 1], rates[place]
        if before < _NEAR * after or after < _NEAR * before:
            return place
    return 0
