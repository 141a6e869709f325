"""The time that the loop goes by: wall time at its start, and from then on what the machine has run.

The core takes the time from its events, and waits by it: a wall clock that is set back by an hour would hold
every timer up for that hour, and one that leaps forward would end every wait at once. So a leap of the wall
clock against the machine's monotonic one is taken off again, from the time and from the driver's events,
which have its wall time. The monotonic clock is CLOCK_MONOTONIC, which stands while the machine sleeps, and
not CLOCK_BOOTTIME: in that time no executor could come and no batch could run, so nobody has waited for one.

That clock is one for all processes of a machine. So a process that resumes where another one has died takes
its time up by a reading of both (`ClockReading`), and has no part in a leap from before it began.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from attrs import evolve, frozen

from spark_elastic.core.events import Event, QueryProgress

# Less is what a clock that is kept right, and a reading of two clocks, are off.
_TOLERANCE_MS = 1_000


@frozen(kw_only=True)
class ClockReading:
    """The time `at` (epoch ms) that was taken for now when the machine's clock was at `monotonic` (ms)."""

    at: int
    monotonic: int


class Clock(Protocol):
    """The only source of the time, epoch ms."""

    def now(self) -> int:
        """Return the time."""
        ...

    def advance_to(self, at: int) -> None:
        """Continue from `at`; a time that has passed changes nothing."""
        ...

    def follow(self, earlier: ClockReading) -> None:
        """Take up the time of the process before this one, before anybody has asked for the time."""
        ...

    def shifted(self, event: Event) -> Event:
        """Return an event of the driver with its times by this clock."""
        ...


def _wall() -> int:
    return time.time_ns() // 1_000_000


def _monotonic() -> int:
    return time.monotonic_ns() // 1_000_000


class SteadyClock:
    """Wall time, but for its leaps; `wall` and `monotonic` give ms."""

    def __init__(self, wall: Callable[[], int] = _wall, monotonic: Callable[[], int] = _monotonic) -> None:
        self._read_wall = wall
        self._read_monotonic = monotonic
        self._wall, self._monotonic = wall(), monotonic()
        self._ahead = 0  # of the wall clock; less than 0 where that has leapt forward
        self._now = self._wall
        # What the time was when the wall clock last leapt forward, and how far it was ahead before.
        self._leapt_at, self._ahead_before = self._now, 0

    def now(self) -> int:
        """Return the time; not earlier than the last time."""
        wall, monotonic = self._read_wall(), self._read_monotonic()
        behind = (monotonic - self._monotonic) - (wall - self._wall)
        if behind < -_TOLERANCE_MS:
            self._leapt_at, self._ahead_before = self._now, self._ahead
        if abs(behind) > _TOLERANCE_MS:
            self._ahead += behind
        self._wall, self._monotonic = wall, monotonic
        self._now = max(self._now, wall + self._ahead)
        return self._now

    def advance_to(self, at: int) -> None:
        """Continue from `at`; a time that has passed changes nothing."""
        self._ahead += max(0, at - self.now())
        self._now = max(self._now, at)

    def reading(self) -> ClockReading:
        """Read both clocks, for a process that is to continue from here."""
        return ClockReading(at=self.now(), monotonic=self._monotonic)

    def follow(self, earlier: ClockReading) -> None:
        """Take up the time of the process before this one, before anybody has asked for the time."""
        passed = self._monotonic - earlier.monotonic
        ahead = earlier.at + passed - self._wall
        if passed < 0 or abs(ahead) <= _TOLERANCE_MS:
            return  # of another boot, or without a leap
        self._ahead = ahead
        self._now = self._wall + ahead
        self._leapt_at = earlier.at

    def shifted(self, event: Event) -> Event:
        """Return an event of the driver with its times by this clock.

        One that is older than a leap is told by where the leap would bring it: nothing of now can be from
        before a leap forward, and nothing has happened later than now.
        """
        now = self.now()
        from_before = event.at + self._ahead < self._leapt_at
        by = min(self._ahead_before if from_before else self._ahead, now - event.at)
        if by == 0:
            return event
        if isinstance(event, QueryProgress):
            return evolve(event, at=event.at + by, started=event.started + by)
        return evolve(event, at=event.at + by)
