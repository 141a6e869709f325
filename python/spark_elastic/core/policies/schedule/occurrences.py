"""When periods are in force: each time, and the next time at which one begins or ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from attrs import frozen

from spark_elastic.core.calendar import DAY_MS, due
from spark_elastic.core.keys.periods import Period

AHEAD_DAYS = 2
"""So many whole days after today are looked at; who finds nothing there is to look again then."""

Of = TypeVar("Of", bound=Period)


@frozen
class Occurrences(Generic[Of]):
    """Periods around one moment: (begin, end, period) in epoch ms, in the order of the periods."""

    found: tuple[tuple[int, int, Of], ...]
    until: int

    @classmethod
    def around(cls, periods: Sequence[Of], zone: str, at: int) -> Occurrences[Of]:
        """Find those that may be in force from `at` until the end of the day after tomorrow (UTC)."""
        today = at // DAY_MS
        until = (today + 1 + AHEAD_DAYS) * DAY_MS
        return cls(tuple(one for period in periods for one in _of(period, zone, at, until)), until)

    def in_force(self, at: int) -> Iterator[Of]:
        """Give the periods that are in force at a moment, each once, in their order."""
        last = None
        for begin, end, period in self.found:
            if begin <= at < end and period is not last:
                last = period
                yield period

    def edges(self) -> list[int]:
        """Give all moments at which a period begins or ends, in order."""
        return sorted({edge for begin, end, _ in self.found for edge in (begin, end)})


def _of(period: Of, zone: str, at: int, until: int) -> Iterator[tuple[int, int, Of]]:
    for day in range((at - period.duration_ms) // DAY_MS, until // DAY_MS):
        for begin in due(period.cron, zone, day):
            if begin + period.duration_ms > at:
                yield begin, begin + period.duration_ms, period
