"""Tests of Flink's autoscaler as a rival: its window, steps up at once, and steps down after an hour."""

from __future__ import annotations

import pytest
from attrs import define, field

from spark_elastic.core.policies.view import Sample
from spark_elastic_lab.simulator.rivals.flink import DelayedDown, Flink, FlinkOptions, capacity, rates_of
from tests.unit.lab.simulator.rivals_views import sample, seen, view


@define
class Day:
    """A query with 4 slots at first, evaluated every minute."""

    rival: Flink = field(factory=Flink)
    now: int = 0
    samples: list[Sample] = field(factory=list)
    given: list[int] = field(factory=list)

    def run(self, minutes: int, duration_ms: int, rows: int = 10_000) -> None:
        for _ in range(minutes):
            for _ in range(6):
                self.now += 10_000
                self.samples.append(sample(self.now, rows, duration_ms))
            wish = self.rival.decide(view(self.now, seen(*self.samples[-120:])))
            self.given.append(wish.queries["q"].slots)


def test_rates_are_those_of_the_window() -> None:
    samples = [sample(at, 5_000, 2_000) for at in range(10_000, 110_000, 10_000)]
    found = rates_of(samples, FlinkOptions())
    assert found is not None
    assert (found.target, found.true, found.catching_up) == (500, 2_500, False)
    assert rates_of([samples[0], samples[0]], FlinkOptions()) is None


def test_lag_counts_and_much_of_it_is_caught_up() -> None:
    samples = [sample(10_000, 5_000, 2_000, behind=100_000), sample(20_000, 5_000, 2_000, behind=200_000)]
    found = rates_of(samples, FlinkOptions())
    assert found is not None
    assert (found.target, found.lag, found.catching_up) == (10_500, 200_000, True)


def test_a_source_is_to_read_what_comes_in_and_what_has_piled_up() -> None:
    options = FlinkOptions(catch_up_s=2)
    found = rates_of([sample(1_000, 0, 500, behind=950), sample(2_000, 100, 500, behind=1_000)], options)
    assert found is not None
    assert found.target == 150
    assert capacity(found, 1.0, options, with_restart=False) == 150 + 500


def test_nothing_is_decided_before_the_window_is_full_and_then_up_at_once() -> None:
    day = Day()
    day.run(20, 10_500)
    assert set(day.given) == {4}
    day.run(1, 10_500)
    # The query processes 952 rows/s while it works; the target is 1,000 / 0.7 rows/s plus a sixth for the
    # restart, so 6.7 slots. With 8 slots each has fewer of the 128 key groups than with 7.
    assert day.given[-1] == 8


def test_down_takes_an_hour() -> None:
    day = Day()
    day.run(20 + 60, 1_000)
    assert set(day.given) == {4}
    day.run(2, 1_000)
    assert day.given[-1] == 2


def test_in_its_band_nothing_is_done() -> None:
    day = Day()
    day.run(120, 5_000)
    assert set(day.given) == {4}


def test_what_was_wanted_most_in_the_last_interval_is_what_is_done() -> None:
    down = DelayedDown(100)
    assert down.ask(0, 3, outside=True) is None
    assert down.ask(50, 5, outside=True) is None
    assert down.ask(60, 4, outside=False) is None
    assert down.ask(100, 2, outside=True) == (5, True)
    # One wish within the band is enough to hold the step down.
    assert down.ask(151, 2, outside=True) == (4, False)
    assert down.ask(161, 2, outside=True) == (2, True)
    down.clear()
    assert down.ask(200, 2, outside=True) is None


@pytest.mark.parametrize("rows", [0, 10_000])
def test_an_idle_query_is_no_reason_to_fail(rows: int) -> None:
    day = Day()
    day.run(100, 1, rows)
    assert day.given[-1] == 2
