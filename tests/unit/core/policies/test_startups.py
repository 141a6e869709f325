"""Tests of the measured start-up time of executors, whatever is requested meanwhile."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spark_elastic.core.policies.planner import StartUps


def test_each_has_been_waited_for_since_the_request_that_it_answers() -> None:
    startups = StartUps()
    startups.requested(1_000, 3, here=1)
    startups.requested(20_000, 5, here=1)
    for here, at in ((2, 30_000), (3, 31_000), (4, 50_000)):
        startups.came(at, here)
    assert list(startups.took_ms) == [29_000, 30_000, 30_000]
    assert startups.waiting == ((5, 20_000),)
    startups.came(51_000, 5)
    startups.came(99_000, 6)  # no request asked for this one
    assert list(startups.took_ms) == [29_000, 30_000, 30_000, 31_000]


def test_what_is_not_wanted_any_more_is_not_waited_for() -> None:
    startups = StartUps()
    startups.requested(1_000, 3, here=1)
    startups.requested(2_000, 8, here=1)
    startups.requested(3_000, 4, here=1)
    assert startups.waiting == ((3, 1_000), (4, 2_000))
    startups.requested(4_000, 1, here=1)
    startups.came(30_000, 2)
    assert startups == StartUps()


steps = st.lists(
    st.tuples(st.integers(1, 9_000), st.none() | st.integers(0, 200), st.integers(0, 200)), max_size=200
)


@given(steps)
def test_whatever_happens_it_stays_bounded(steps: list[tuple[int, int | None, int]]) -> None:
    startups, at = StartUps(), 0
    for later, total, here in steps:
        at += later
        startups.requested(at, total, here)
        startups.came(at + 1, here + 1)
        startups.validate()
