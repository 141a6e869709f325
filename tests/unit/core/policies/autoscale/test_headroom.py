"""Tests of the headroom, which follows the variation of the arrival rate, and of its effect."""

from __future__ import annotations

import pytest

from spark_elastic.core.policies.autoscale.model import Variation, variation

TIMES = range(0, 100_000, 10_000)


def test_a_steady_rate_leaves_the_least_room_and_one_that_varies_more() -> None:
    steady = variation([100.0] * 10, TIMES)
    assert steady == Variation(spread=0.0, growth=0.0)
    assert steady.load == pytest.approx(1 / 1.08)
    uneven = variation([90.0, 110.0] * 5, TIMES)
    assert uneven.spread == pytest.approx(0.1, rel=0.2)
    assert 0.8 <= uneven.load < steady.load


def test_a_slope_counts_where_it_is_more_than_noise() -> None:
    rising = variation([100.0 + step for step in range(10)], TIMES)
    assert rising.growth == pytest.approx(1 / 10_000 / 104.5)
    assert rising.spread == pytest.approx(0.0, abs=1e-9)
    assert variation([90.0, 112.0, 95.0, 108.0, 91.0, 113.0, 99.0], TIMES[:7]).growth == 0.0


def test_a_leap_is_no_variation() -> None:
    leaps = variation([10.0, 11.0, 10.0, 80.0, 81.0, 80.0, 79.0, 80.0, 80.0, 81.0], TIMES)
    assert leaps.spread < 0.02
    assert leaps.growth == 0.0
    assert variation([10.0, 10.0, 80.0], TIMES[:3]) == Variation(), "too few since then"


@pytest.mark.parametrize("rates", [[], [5.0], [0.0] * 10])
def test_too_little_tells_nothing(rates: list[float]) -> None:
    assert variation(rates, TIMES[: len(rates)]) == Variation()
