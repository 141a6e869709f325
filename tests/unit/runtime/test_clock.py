"""Tests of the loop's clock while the wall clock is set back and forth and the machine sleeps."""

from __future__ import annotations

from spark_elastic.core.events import QueryProgress, QueryStarted
from spark_elastic.runtime.clock import SteadyClock
from tests.unit.runtime.support import START, added

HOUR_MS = 3_600_000


class Machine:
    """A machine with a wall clock and a monotonic clock."""

    def __init__(self) -> None:
        self.wall = START
        self.monotonic = 7_000
        self.clock = SteadyClock(lambda: self.wall, lambda: self.monotonic)

    def next_process(self) -> None:
        """Let another process continue from this one's clock."""
        reading = self.clock.reading()
        self.wall, self.monotonic = self.wall + 50, self.monotonic + 50
        self.clock = SteadyClock(lambda: self.wall, lambda: self.monotonic)
        self.clock.follow(reading)

    def passes(self, ms: int) -> int:
        """Let time pass, and return the loop's time."""
        self.wall += ms
        self.monotonic += ms
        return self.clock.now()


def test_it_is_wall_time() -> None:
    machine = Machine()
    assert machine.passes(0) == START
    assert machine.passes(500) == START + 500


def test_a_clock_that_is_set_back_stops_nothing() -> None:
    machine = Machine()
    machine.passes(10_000)
    machine.wall -= HOUR_MS
    assert machine.passes(2_000) == START + 12_000
    assert machine.passes(500) == START + 12_500


def test_a_clock_that_is_set_right_again_leaves_no_leap() -> None:
    machine = Machine()
    machine.wall -= HOUR_MS
    machine.passes(1_000)
    machine.wall += HOUR_MS
    assert machine.passes(1_000) == START + 2_000
    assert machine.clock.shifted(event := added(1, machine.wall)) is event


def test_a_clock_that_leaps_forward_or_a_machine_that_sleeps_has_waited_for_nothing() -> None:
    machine = Machine()
    machine.passes(10_000)
    machine.wall += HOUR_MS
    assert machine.passes(0) == START + 10_000
    assert machine.passes(500) == START + 10_500
    machine.wall += HOUR_MS
    assert machine.passes(500) == START + 11_000
    machine.wall -= 2 * HOUR_MS
    assert machine.passes(500) == START + 11_500 == machine.wall


def test_events_around_a_leap_forward_keep_their_order() -> None:
    machine = Machine()
    machine.passes(10_000)
    read, unread = added(1, machine.wall - 5), added(2, machine.wall + 200)
    machine.wall += 300
    machine.monotonic += 300
    machine.wall += HOUR_MS
    assert machine.clock.shifted(read).at == START + 9_995
    assert machine.clock.shifted(unread).at == START + 10_200
    later = QueryProgress(
        id="s3", at=machine.wall, query="q", run="r", batch=1, started=machine.wall - 50,
        duration_ms=50, partitions=2,
    )  # fmt: skip
    shifted = machine.clock.shifted(later)
    assert isinstance(shifted, QueryProgress)
    assert (shifted.at, shifted.started) == (START + 10_300, START + 10_250)


def test_what_is_within_the_tolerance_is_the_wall_clocks() -> None:
    machine = Machine()
    machine.wall -= 800
    assert machine.passes(0) == START
    assert machine.passes(1_000) == START + 200


def test_events_of_the_driver_are_shifted_by_as_much() -> None:
    machine = Machine()
    machine.passes(10_000)
    machine.wall -= HOUR_MS
    machine.passes(2_000)
    started = QueryStarted(id="s1", at=machine.wall - 5, query="q", run="r", partitions=2)
    assert machine.clock.shifted(started).at == START + 12_000 - 5
    batch = QueryProgress(
        id="s2", at=machine.wall - 5, query="q", run="r", batch=1, started=machine.wall - 405,
        duration_ms=400, partitions=2,
    )  # fmt: skip
    shifted = machine.clock.shifted(batch)
    assert isinstance(shifted, QueryProgress)
    assert (shifted.at, shifted.started) == (START + 12_000 - 5, START + 12_000 - 405)


def test_an_event_from_before_the_leap_is_not_from_the_future() -> None:
    machine = Machine()
    machine.passes(10_000)
    event = added(1, machine.wall - 5)
    machine.wall -= HOUR_MS
    assert machine.clock.shifted(event).at == START + 10_000


def test_events_are_as_they_are_while_nothing_leaps() -> None:
    machine = Machine()
    event = added(1, START)
    machine.passes(10_000)
    assert machine.clock.shifted(event) is event


def test_it_goes_on_from_a_later_time() -> None:
    machine = Machine()
    machine.clock.advance_to(START + HOUR_MS)
    assert machine.passes(500) == START + HOUR_MS + 500
    machine.clock.advance_to(START)
    assert machine.passes(500) == START + HOUR_MS + 1_000
    assert machine.clock.shifted(added(1, machine.wall)).at == START + HOUR_MS + 1_000


def test_the_next_process_has_no_part_in_a_leap_before_it() -> None:
    for leap in (HOUR_MS, -HOUR_MS):
        machine = Machine()
        machine.passes(10_000)
        machine.wall += leap
        machine.next_process()
        assert machine.passes(0) == START + 10_050
        assert machine.clock.shifted(added(1, machine.wall - 5)).at == START + 10_045
        machine.next_process()
        assert machine.passes(500) == START + 10_600
        machine.wall -= leap
        assert machine.passes(500) == START + 11_100 == machine.wall


def test_an_event_from_before_a_leap_that_the_next_process_reads_is_as_old_as_it_was() -> None:
    machine = Machine()
    machine.passes(10_000)
    event = added(1, machine.wall + 20)
    machine.passes(20)
    machine.wall += HOUR_MS
    machine.next_process()
    assert machine.clock.shifted(event) is event


def test_without_a_leap_the_next_process_goes_by_the_wall_clock() -> None:
    machine = Machine()
    machine.passes(10_000)
    machine.wall += 900
    machine.next_process()
    assert machine.passes(0) == machine.wall


def test_another_start_of_the_machine_tells_nothing() -> None:
    machine = Machine()
    machine.passes(10_000)
    reading = machine.clock.reading()
    machine.wall, machine.monotonic = machine.wall + HOUR_MS, 3_000
    machine.clock = SteadyClock(lambda: machine.wall, lambda: machine.monotonic)
    machine.clock.follow(reading)
    assert machine.passes(0) == machine.wall
