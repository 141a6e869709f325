"""The time that the loop goes by: it never runs backwards and never stands still for long.

The core takes the time from its events, and keeps to the latest that it has seen: set back by an hour, the
wall clock would hold every timer up for that hour. So what the wall clock falls behind the machine's
monotonic one is added from then on, to the time and to the driver's events, which have its wall time.
It is taken off again as far as the wall clock is set forward later. Any other leap forward is followed: while
a machine sleeps its monotonic clock may stand.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from attrs import evolve

from spark_elastic.core.events import Event, QueryProgress

# Less is what a clock that is kept right, and a reading of two clocks, are off.
_TOLERANCE_MS = 1_000


class Clock(Protocol):
    """The only source of the time, epoch ms."""

    def now(self) -> int:
        """Return the time."""
        ...

    def advance_to(self, at: int) -> None:
        """Go on from `at`; a time that has passed changes nothing."""
        ...

    def shifted(self, event: Event) -> Event:
        """Return an event of the driver with its times by this clock."""
        ...


def _wall() -> int:
    return time.time_ns() // 1_000_000


def _monotonic() -> int:
    return time.monotonic_ns() // 1_000_000


class SteadyClock:
    """Wall time, but for what it has been set back; `wall` and `monotonic` give ms."""

    def __init__(self, wall: Callable[[], int] = _wall, monotonic: Callable[[], int] = _monotonic) -> None:
        self._read_wall = wall
        self._read_monotonic = monotonic
        self._wall, self._monotonic = wall(), monotonic()
        self._ahead = 0
        self._now = self._wall

    def now(self) -> int:
        """Return the time; not earlier than the last time."""
        wall, monotonic = self._read_wall(), self._read_monotonic()
        behind = (monotonic - self._monotonic) - (wall - self._wall)
        if abs(behind) > _TOLERANCE_MS:
            self._ahead = max(0, self._ahead + behind)
        self._wall, self._monotonic = wall, monotonic
        self._now = max(self._now, wall + self._ahead)
        return self._now

    def advance_to(self, at: int) -> None:
        """Go on from `at`; a time that has passed changes nothing."""
        self._ahead += max(0, at - self.now())
        self._now = max(self._now, at)

    def shifted(self, event: Event) -> Event:
        """Return an event of the driver with its times by this clock.

        One that is older than the leap is brought too far by it: nothing has happened later than now.
        """
        now = self.now()
        by = min(self._ahead, now - event.at)
        if by == 0:
            return event
        if isinstance(event, QueryProgress):
            return evolve(event, at=event.at + by, started=event.started + by)
        return evolve(event, at=event.at + by)
