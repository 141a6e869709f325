"""Tests of which limits apply at a moment and until when: in any zone, around clock changes, in advance."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_elastic.core.bounds.requirements import MAX_PARALLELISM
from spark_elastic.core.keys import policies
from spark_elastic.core.keys.periods import Window
from spark_elastic.core.policies.schedule import Limited, Occurrences, limited
from spark_elastic.core.policies.view import allowed

MINUTE = 60_000


def windows(text: str) -> tuple[Window, ...]:
    return policies.WINDOWS.kind.parse(text)


def ms(text: str, zone: str = "UTC") -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()) * 1_000


def slots(found: Limited) -> tuple[int, int]:
    may = allowed(1, MAX_PARALLELISM, found.limits)
    return may.lower, may.upper


def in_force(text: str, zone: str, at: int) -> bool:
    return any(Occurrences.around(windows(text), zone, at).in_force(at))


def test_a_window_is_in_force_from_its_begin_to_its_end() -> None:
    day = windows("0 8 * * * for 10h name=day lowerBound=4 upperBound=32 minExecutors=6")
    for at, expected in [("07:59", None), ("08:00", (4, 32)), ("17:59:59", (4, 32)), ("18:00", None)]:
        found = limited(day, "UTC", ms(f"2026-01-05 {at}"), 0)
        assert (slots(found) if found.limits else None) == expected
        assert found.executors == (None if expected is None else 6)
    found = limited(day, "UTC", ms("2026-01-05 09:00"), 0)
    assert found.until == ms("2026-01-05 18:00")
    assert {one.by for one in found.limits} == {found.executors_by} == {"the window day"}
    assert limited(day, "UTC", ms("2026-01-05 18:00"), 0).until == ms("2026-01-06 08:00")


def test_what_a_window_calls_for_is_there_ahead_of_time_and_what_it_takes_away_is_not() -> None:
    both = windows("0 20 * * * for 12h name=night upperBound=4; 0 8 * * * for 12h name=day lowerBound=8")
    lead = 5 * MINUTE
    assert slots(limited(both, "UTC", ms("2026-01-05 07:54:59"), lead)) == (1, 4)
    assert limited(both, "UTC", ms("2026-01-05 07:54:59"), lead).until == ms("2026-01-05 07:55")
    # Otherwise the night's limit would delay the executors of the day.
    assert slots(limited(both, "UTC", ms("2026-01-05 07:55"), lead)) == (8, 8)
    assert slots(limited(both, "UTC", ms("2026-01-05 08:00"), lead)) == (8, MAX_PARALLELISM)
    assert slots(limited(both, "UTC", ms("2026-01-05 19:58"), lead)) == (8, MAX_PARALLELISM)
    assert slots(limited(both, "UTC", ms("2026-01-05 20:00"), lead)) == (1, 4)


def test_of_windows_that_overlap_the_first_that_states_a_limit_counts() -> None:
    text = "0 0 * * 5 for 1d name=friday lowerBound=50; 0 8 * * * for 10h lowerBound=4 upperBound=32"
    assert slots(limited(windows(text), "UTC", ms("2026-01-09 09:00"), 0)) == (50, 50)
    assert slots(limited(windows(text), "UTC", ms("2026-01-09 20:00"), 0)) == (50, MAX_PARALLELISM)
    assert slots(limited(windows(text), "UTC", ms("2026-01-08 09:00"), 0)) == (4, 32)
    turned = "; ".join(reversed(text.split("; ")))
    assert slots(limited(windows(turned), "UTC", ms("2026-01-09 09:00"), 0)) == (4, 32)


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("2026-03-28 07:30", False),  # 08:30 in Berlin, before the change
        ("2026-03-28 08:30", True),
        ("2026-03-29 07:30", True),  # 09:30 there, after the change
        ("2026-03-29 06:30", False),
        ("2026-10-24 07:30", True),
        ("2026-10-25 07:30", False),  # 08:30 there again
        ("2026-10-25 08:30", True),
    ],
)
def test_windows_follow_the_clock_on_the_wall(at: str, expected: bool) -> None:
    assert in_force("0 9 * * * for 1h lowerBound=2", "Europe/Berlin", ms(at)) is expected


def test_what_is_due_in_an_hour_that_is_left_out_is_due_right_after_it() -> None:
    text = "30 2 * * * for 1h lowerBound=2"
    assert not in_force(text, "Europe/Berlin", ms("2026-03-29 00:59:59"))
    # 03:00 in Berlin, as 02:30 does not exist that day
    assert in_force(text, "Europe/Berlin", ms("2026-03-29 01:00"))
    assert in_force(text, "Europe/Berlin", ms("2026-03-29 01:59:59"))
    assert not in_force(text, "Europe/Berlin", ms("2026-03-29 02:00"))


def test_what_is_due_in_an_hour_that_comes_twice_is_due_once() -> None:
    text = "30 2 * * * for 30min lowerBound=2"
    minutes = [ms("2026-10-24 23:00") + MINUTE * number for number in range(300)]
    held = [at for at in minutes if in_force(text, "Europe/Berlin", at)]
    assert held == [ms("2026-10-25 00:30") + MINUTE * number for number in range(30)]


def test_a_window_that_begins_before_midnight_is_in_force_after_it() -> None:
    night = "0 22 * * SUN for 2d name=weekend upperBound=2"
    assert in_force(night, "UTC", ms("2026-01-06 21:59"))
    assert not in_force(night, "UTC", ms("2026-01-06 22:00"))


ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"])
MOMENTS = st.one_of(
    st.integers(ms("2025-12-30 00:00"), ms("2027-01-02 00:00")),
    st.integers(ms("2026-03-28 20:00"), ms("2026-03-29 06:00")),
    st.integers(ms("2026-10-24 20:00"), ms("2026-10-25 06:00")),
)
CRONS = st.tuples(
    st.sampled_from(["0", "30", "*/20", "15,45", "*"]),
    st.sampled_from(["8", "2", "*/3", "22", "1-3", "*"]),
    st.sampled_from(["*", "*", "1", "L", "31"]),
    st.sampled_from(["*", "*", "2", "3,10"]),
    st.sampled_from(["*", "MON-FRI", "SUN", "MON#1"]),
).map(" ".join)
LIMITS = st.sampled_from(
    [
        "lowerBound=4",
        "upperBound=3",
        "lowerBound=2 upperBound=9",
        "minExecutors=5",
        "lowerBound=7 upperBound=7",
    ]
)
DURATIONS = st.sampled_from(["1min", "45min", "8h", "26h", "7d"])
TEXTS = st.lists(
    st.tuples(CRONS, DURATIONS, LIMITS).map(lambda one: f"{one[0]} for {one[1]} {one[2]}"), max_size=4
).map("; ".join)


def all_(text: str) -> tuple[Window, ...]:
    try:
        return windows(text or "none")
    except ValueError:  # such as 31 February
        return ()


@given(
    text=TEXTS, zone=ZONES, at=MOMENTS, lead=st.sampled_from([0, 30_000, 20 * MINUTE]), part=st.floats(0, 1)
)
def test_limits_are_valid_and_stay_as_they_are_until_it_says(
    text: str, zone: str, at: int, lead: int, part: float
) -> None:
    some = all_(text)
    now = limited(some, zone, at, lead)
    assert now == limited(some, zone, at, lead)
    lower, upper = slots(now)
    assert 1 <= lower <= upper <= MAX_PARALLELISM
    stated = [one.lower for one in now.limits if one.lower] + [one.upper for one in now.limits if one.upper]
    assert set(stated) <= {bound for one in some for bound in (one.lower, one.upper)}
    assert at < now.until <= at + 3 * 86_400_000 + lead
    later = limited(some, zone, at + int(part * (now.until - 1 - at)), lead)
    assert (slots(later), later.executors) == (slots(now), now.executors)
    assert later.until >= now.until


@given(
    minutes=st.sets(st.integers(0, 59), min_size=1, max_size=3),
    hours=st.sets(st.integers(0, 23), min_size=1, max_size=3),
    days=st.sets(st.integers(0, 6), min_size=1, max_size=6),
    length=st.sampled_from([1, 50, 600, 3_000]),
    at=st.integers(ms("2026-01-01 00:00"), ms("2026-02-01 00:00")),
)
def test_a_window_is_in_force_after_each_minute_that_its_expression_names(
    minutes: set[int], hours: set[int], days: set[int], length: int, at: int
) -> None:
    cron = " ".join(
        [
            ",".join(map(str, sorted(minutes))),
            ",".join(map(str, sorted(hours))),
            "*",
            "*",
            ",".join(map(str, days)),
        ]
    )
    last = datetime.fromtimestamp(at // MINUTE * 60, timezone.utc)
    expected = any(
        begin.minute in minutes and begin.hour in hours and begin.isoweekday() % 7 in days
        for begin in (last - timedelta(minutes=back) for back in range(length))
    )
    assert in_force(f"{cron} for {length}min lowerBound=2", "UTC", at) is expected
