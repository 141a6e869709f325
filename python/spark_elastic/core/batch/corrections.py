"""How far a plan's sizes are from what is written: measured on exchanges that have run."""

from __future__ import annotations

from collections import deque
from statistics import median

from attrs import define, field

_SAMPLES = 5
_SOURCES = 512
_LEAST, _MOST = 1 / 1024, 64.0
"""One exchange that was empty, or a plan that knew nothing, does not make the next expectation absurd."""


@define
class Corrections:
    """The last ratios of measured to expected bytes, by what the expectation was made of; bounded."""

    _ratios: dict[str, deque[float]] = field(factory=dict)

    def learn(self, source: str, expected: int, measured: int) -> None:
        """Take in one exchange; without a source or anything expected it teaches nothing."""
        if not source or expected < 1:
            return
        ratios = self._ratios.pop(source, None) or deque(maxlen=_SAMPLES)
        ratios.append(min(max(measured / expected, _LEAST), _MOST))
        self._ratios[source] = ratios
        while len(self._ratios) > _SOURCES:
            del self._ratios[next(iter(self._ratios))]

    def factor(self, source: str) -> float:
        """Return what to multiply expected bytes with: 1 for a source that has not been measured.

        What is true of one plan says nothing about another: expectations are wrong in both directions.
        """
        ratios = self._ratios.get(source)
        return median(ratios) if ratios else 1.0

    def knows(self, source: str) -> bool:
        """Say whether a source has been measured."""
        return source in self._ratios
