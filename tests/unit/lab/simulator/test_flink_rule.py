"""Tests of Flink's rule against the examples of its own tests, and against its formulas."""

from __future__ import annotations

import math
from typing import Any

import pytest

from spark_elastic_lab.simulator.rivals.flink import (
    Alignment,
    FlinkOptions,
    Rates,
    align,
    capacity,
    evaluate,
    scalability,
)

NO_CATCH_UP: dict[str, Any] = {"catch_up_s": 0.0}
KEYS = ("capacity", "up", "down", "factor", "parallelism", "outside")


@pytest.mark.parametrize(
    ("parallelism", "rates", "options", "expected"),
    [
        (10, (50, 100), {"target": 1.0, **NO_CATCH_UP}, (50, 50, 71, 0.5, 5, True)),
        (10, (80, 100), {"target": 0.8, **NO_CATCH_UP}, (100, 80, 160, 1.0, 10, False)),
        (10, (60, 100), {"target": 0.8, **NO_CATCH_UP}, (75, 60, 120, 0.75, 8, False)),
        (2, (100, 40), {"target": 0.5, **NO_CATCH_UP}, (200, 125, 500, 5.0, 10, True)),
        (2, (100, 100), {"target": 0.6, **NO_CATCH_UP}, (167, 111, 333, 1.67, 4, True)),
        (10, (10, 100), {"target": 1.0, **NO_CATCH_UP}, (10, 10, 14, 0.4, 4, True)),
        (10, (10, 100), {"target": 1.0, "down_factor": 0.5, **NO_CATCH_UP}, (10, 10, 14, 0.5, 5, True)),
        (10, (200, 10), {"target": 1.0, "up_factor": 0.5, **NO_CATCH_UP}, (200, 200, 286, 1.5, 15, True)),
        (10, (200, 10), {"target": 1.0, "up_factor": 0.6, **NO_CATCH_UP}, (200, 200, 286, 1.6, 16, True)),
        # Steps with less effect than promised: Flink's detection is off by default and left out here.
        (5, (100, 50), {"target": 1.0, **NO_CATCH_UP}, (100, 100, 143, 2.0, 10, True)),
        (10, (180, 90), {"target": 1.0, **NO_CATCH_UP}, (180, 180, 257, 2.0, 20, True)),
        (20, (180, 90), {"target": 1.0, **NO_CATCH_UP}, (180, 180, 257, 2.0, 40, True)),
        (20, (45, 90), {"target": 1.0, **NO_CATCH_UP}, (45, 45, 64, 0.5, 10, True)),
        (10, (1_000, 2_000), {}, (1_595, 1_000, 2_667, 0.7975, 8, False)),
        (10, (1_000, 900), {}, (1_595, 1_000, 2_667, 1.7722, 18, True)),
        (10, (1_000, 3_000), {}, (1_595, 1_000, 2_667, 0.5317, 6, True)),
        (10, (1_000, 1_300, 600_000, True), {}, (1_929, 1_333, math.inf, 1.4838, 15, True)),
        (10, (1_000, 1_100, 180_000), {}, (1_695, 1_100, 2_767, 1.5409, 16, False)),
        (4, (400, 2_000), NO_CATCH_UP, (571, 400, 1_000, 0.4, 2, True)),
        (
            1,
            (500, 588.2353, 2_000),
            {"target": 0.8, "max_utilization": 0.9, "min_utilization": 0.7, "catch_up_s": 2, "restart_s": 1},
            (1_875, 1_556, 1_964, 3.1875, 4, True),
        ),
    ],
)
def test_decisions(
    parallelism: int, rates: tuple[Any, ...], options: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    target, true, lag, behind = (*rates, 0.0, False)[:4] if len(rates) == 2 else (*rates, False)[:4]
    found = evaluate(
        Rates(target=target, true=true, lag=lag, catching_up=behind is True),
        parallelism,
        FlinkOptions(**options),
    )
    assert tuple(getattr(found, key) for key in KEYS) == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize(
    ("lag_rate", "catching_up", "catch_up_s", "restart_s", "up", "down"),
    [
        (0, False, 0, 1, 778, 1_000),
        (350, False, 2, 1, 1_128, 1_700),
        (0, False, 2, 1, 778, 1_350),
        (350, True, 2, 1, 1_050, math.inf),
        (350, False, 60, 300, 1_128, 4_850),
    ],
)
def test_thresholds(
    lag_rate: float, catching_up: bool, catch_up_s: float, restart_s: float, up: float, down: float
) -> None:
    options = FlinkOptions(
        target=0.8, max_utilization=0.9, min_utilization=0.7, catch_up_s=catch_up_s, restart_s=restart_s
    )
    found = evaluate(Rates(target=700, true=900, lag_rate=lag_rate, catching_up=catching_up), 1, options)
    assert (found.up, found.down) == (up, down)


def test_a_band_of_defaults_is_around_the_target() -> None:
    assert (FlinkOptions().most_used, FlinkOptions().least_used) == pytest.approx((1.0, 0.4))
    assert capacity(Rates(target=9, true=1), 0, FlinkOptions(), with_restart=False) == math.inf


def test_learned_scalability_divides() -> None:
    assert scalability([(1, 50), (2, 80), (4, 100)]) == 0.59
    assert scalability([(1, 50), (2, 80)]) == 1
    assert scalability([(1, 50), (2, 50), (9, 50)]) == 0.5
    found = evaluate(Rates(target=1_000, true=900), 8, FlinkOptions(), scalability=0.59)
    assert found.factor == pytest.approx(3.0038, abs=1e-4)
    assert found.parallelism == 25


def test_a_parallelism_out_of_bounds_is_let_be() -> None:
    bounded = FlinkOptions(min_parallelism=4, max_parallelism=6, **NO_CATCH_UP)
    assert evaluate(Rates(target=1, true=100), 10, bounded).parallelism == 4
    assert evaluate(Rates(target=1, true=100), 2, bounded).parallelism == 2
    assert evaluate(Rates(target=900, true=100), 10, bounded).parallelism == 10
    assert evaluate(Rates(target=900, true=100), 5, bounded).parallelism == 6


@pytest.mark.parametrize(
    ("mode", "current", "wanted", "partitions", "most", "upper", "aligned"),
    [
        ("BALANCED", 16, 24, 0, 128, 2**31 - 1, 26),
        ("EVENLY_SPREAD", 16, 24, 0, 128, 2**31 - 1, 32),
        ("OFF", 16, 24, 0, 128, 2**31 - 1, 24),
        ("EVENLY_SPREAD", 22, 25, 35, 128, 30, 25),
        ("EVENLY_SPREAD", 5, 7, 12, 8, 2**31 - 1, 7),
        ("BALANCED", 40, 19, 64, 720, 200, 22),
        ("EVENLY_SPREAD", 40, 19, 64, 720, 200, 32),
        ("BALANCED", 5, 5, 12, 128, 200, 5),
        ("EVENLY_SPREAD", 60, 65, 0, 128, 2**31 - 1, 128),
        ("EVENLY_SPREAD", 6, 5, 0, 36, 2**31 - 1, 6),
        # FLINK-40389: a parallelism above the number of partitions is kept.
        ("BALANCED", 100, 180, 15, 720, 200, 180),
        ("BALANCED", 100, 50, 15, 720, 200, 50),
    ],
)
def test_alignment(
    mode: Alignment, current: int, wanted: int, partitions: int, most: int, upper: int, aligned: int
) -> None:
    assert align(mode, current, wanted, partitions=partitions, most=most, upper=upper) == aligned
