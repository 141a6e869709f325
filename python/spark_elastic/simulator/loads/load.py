"""A load: the rows that have come in up to any moment."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate

from attrs import field, frozen


def _checked(rates: Iterable[float]) -> tuple[float, ...]:
    rates = tuple(rates)
    if not rates:
        raise ValueError("a load without a second: give it at least one rate")
    for second, rate in enumerate(rates):
        if not (math.isfinite(rate) and rate >= 0):
            raise ValueError(f"{rate} rows/s in second {second}: a rate is a number from 0 up")
    return rates


@frozen
class Load:
    """So many rows per second come in: `rates` has one for each second, from second 0 on.

    After the last second nothing comes. Raises ValueError for no rates, or one that is negative or no number.
    """

    rates: tuple[float, ...] = field(converter=_checked, repr=False)
    # How many rows have come by the begin of each second; derived.
    _until: tuple[float, ...] = field(init=False, repr=False, eq=False)

    @_until.default
    def _sum(self) -> tuple[float, ...]:
        return tuple(accumulate(self.rates, initial=0.0))

    @property
    def total(self) -> float:
        """All rows that come."""
        return self._until[-1]

    def rate(self, second: float) -> float:
        """Return the rate (rows/s) at a moment."""
        return self.rates[int(second)] if 0 <= second < len(self.rates) else 0.0

    def arrived(self, second: float) -> float:
        """Return how many rows have come by a moment (s), with fractions of a row."""
        if second <= 0:
            return 0.0
        whole = int(second)
        if whole >= len(self.rates):
            return self.total
        return self._until[whole] + (second - whole) * self.rates[whole]

    def mean(self, begin: float, end: float) -> float:
        """Return the mean rate (rows/s) between two moments (s), the first before the second."""
        return (self.arrived(end) - self.arrived(begin)) / (end - begin)

    def when(self, rows: float) -> float:
        """Return the moment (s) by which so many rows have come, infinity if they never do."""
        if rows <= 0:
            return 0.0
        second = bisect_left(self._until, rows) - 1
        if second >= len(self.rates):
            return math.inf
        return second + (rows - self._until[second]) / self.rates[second]
