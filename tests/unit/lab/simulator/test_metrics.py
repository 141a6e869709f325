"""Tests that the metrics match their definitions."""

from __future__ import annotations

import math

import pytest

from spark_elastic_lab.simulator.demand import Demand
from spark_elastic_lab.simulator.record import Commit, Steps
from spark_elastic_lab.simulator.run_metrics import elasticity, joined, lag, oscillations

MINUTE = 60_000


def steps(*noted: tuple[int, int]) -> Steps:
    made = Steps()
    for at, value in noted:
        made.note(at, value)
    return made


def test_elasticity_of_a_worked_example() -> None:
    found = elasticity([4, 4, 8, 8, 6, 4], [4, 5, 5, 8, 8, 5])
    assert found.under == pytest.approx(6.25)
    assert found.over == pytest.approx(13.889, abs=0.001)
    assert found.time_under == pytest.approx(16.667, abs=0.001)
    assert found.time_over == 50
    assert found.instability == 80


def test_what_there_is_as_needed_is_perfect() -> None:
    found = elasticity([3, 1, 2], [3, 1, 2])
    assert (found.under, found.over, found.time_under, found.time_over, found.instability) == (0, 0, 0, 0, 0)
    with pytest.raises(ValueError, match="give as many of both"):
        elasticity([1], [])


def test_steps_hold_until_the_next_one() -> None:
    made = steps((10, 4), (20, 4), (30, 6), (30, 7), (50, 2))
    assert (made.times, made.values) == ([10, 30, 50], [4, 7, 2])
    assert [made.at(now) for now in (9, 10, 29, 30, 99)] == [0, 4, 4, 7, 2]
    assert made.total(60) == 20 * 4 + 20 * 7 + 10 * 2
    assert made.total(40) == 20 * 4 + 10 * 7
    assert made.changes == 2
    assert Steps().total(9) == 0


def test_lag_grows_from_commit_to_commit() -> None:
    commits = [
        Commit(15_000, 1_000, 10_000, 90, 30),
        Commit(60_000, 10_000, 59_000, 200, 5),
        Commit(70_000, 59_000, math.inf, 10, 0),
        Commit(200_000, math.inf, math.inf, 0, 0),
    ]
    found = lag(commits, 1_000, 30)
    assert found.largest_s == 50
    assert found.largest_rows == 200
    assert found.outside == ((40_000, 60_000),)


def test_a_query_that_stays_behind_is_outside_all_the_time() -> None:
    commits = [Commit(at, since, since + 10_000, 9, 9) for at, since in ((50_000, 0), (90_000, 10_000))]
    assert lag(commits, 0, 30).outside == ((30_000, 90_000),)


def test_intervals_that_touch_are_one() -> None:
    assert list(joined([(5, 7), (1, 2), (2, 4), (6, 9), (3, 3)])) == [(1, 4), (5, 9)]
    assert list(joined([])) == []


@pytest.mark.parametrize(
    ("noted", "count"),
    [
        ([(0, 2), (1, 4), (3, 2), (5, 4)], 1),
        ([(0, 2), (1, 4), (3, 2), (5, 4), (6, 3), (8, 4)], 2),
        ([(0, 2), (1, 4), (3, 2), (12, 4)], 0),  # later than the horizon
        ([(0, 4), (1, 2), (3, 4), (5, 2)], 0),  # goes up only once
        ([(0, 2), (1, 3), (2, 4), (3, 3), (4, 2), (5, 3)], 1),
    ],
)
def test_up_down_and_up_again_is_an_oscillation(noted: list[tuple[int, int]], count: int) -> None:
    wanted = steps(*((at * MINUTE, value) for at, value in noted))
    assert oscillations(wanted, Demand(executors=(2,) * 60, slots=(2,) * 60)) == count


def test_a_load_that_does_so_is_no_oscillation() -> None:
    needed = Demand(executors=(2, 4, 4, 4, 2, 2, 2, 4, 4, 4, 4, 4), slots=(2,) * 12)
    assert oscillations(steps((0, 2), (30_000, 4), (2 * MINUTE, 2), (4 * MINUTE, 4)), needed) == 0
