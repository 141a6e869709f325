"""The clock of the event loop: wall time at its start, then the time that the machine has run.

The core takes the time from its events and waits by it. A wall clock set back by an hour would delay every
timer by that hour, and one that leaps forward would end every wait at once. A leap of the wall clock against
the machine's monotonic clock is therefore removed from the time, and from the driver's events, which carry
wall time. The monotonic clock is CLOCK_MONOTONIC, which stops while the machine sleeps, not CLOCK_BOOTTIME.
During that sleep no executor can arrive and no batch can run, so it must not count as waiting.

All processes of a machine share the monotonic clock. A process that resumes after another one has died
therefore continues its time from a reading of both clocks (`ClockReading`). A leap of the wall clock before
its start does not affect it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from attrs import evolve, frozen

from spark_elastic.core.events import Event, QueryProgress

# Synchronization of the wall clock, and reading two clocks one after the other, cause smaller deviations.
_TOLERANCE_MS = 1_000


@frozen(kw_only=True)
class ClockReading:
    """The time `at` (epoch ms) that counted as now when the machine's clock was at `monotonic` (ms)."""

    at: int
    monotonic: int


class Clock(Protocol):
    """The only source of the time, in epoch ms."""

    def now(self) -> int:
        """Return the current time."""
        ...

    def advance_to(self, at: int) -> None:
        """Continue from `at`; a time that has passed changes nothing."""
        ...

    def follow(self, earlier: ClockReading) -> None:
        """Continue the time of the previous process; call this before the clock is used."""
        ...

    def shifted(self, event: Event) -> Event:
        """Return an event of the driver with its times converted to this clock."""
        ...


def _wall() -> int:
    return time.time_ns() // 1_000_000


def _monotonic() -> int:
    return time.monotonic_ns() // 1_000_000


class SteadyClock:
    """Wall time without its leaps; `wall` and `monotonic` return ms."""

    def __init__(self, wall: Callable[[], int] = _wall, monotonic: Callable[[], int] = _monotonic) -> None:
        self._read_wall = wall
        self._read_monotonic = monotonic
        self._wall, self._monotonic = wall(), monotonic()
        self._ahead = 0  # offset from the wall clock, negative after it has leapt forward
        self._now = self._wall
        # The time when the wall clock last leapt forward, and the offset before that.
        self._leapt_at, self._ahead_before = self._now, 0

    def now(self) -> int:
        """Return the current time, never earlier than the last one returned."""
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
        """Read both clocks, for a process that will continue from here."""
        return ClockReading(at=self.now(), monotonic=self._monotonic)

    def follow(self, earlier: ClockReading) -> None:
        """Continue the time of the previous process; call this before the clock is used."""
        passed = self._monotonic - earlier.monotonic
        ahead = earlier.at + passed - self._wall
        if passed < 0 or abs(ahead) <= _TOLERANCE_MS:
            return  # from another boot, or without a leap
        self._ahead = ahead
        self._now = self._wall + ahead
        self._leapt_at = earlier.at

    def shifted(self, event: Event) -> Event:
        """Return an event of the driver with its times converted to this clock.

        An event is from before a forward leap if the current offset would put it before the leap; it then
        gets the earlier offset. No event is put later than now.
        """
        now = self.now()
        from_before = event.at + self._ahead < self._leapt_at
        by = min(self._ahead_before if from_before else self._ahead, now - event.at)
        if by == 0:
            return event
        if isinstance(event, QueryProgress):
            return evolve(event, at=event.at + by, started=event.started + by)
        return evolve(event, at=event.at + by)
