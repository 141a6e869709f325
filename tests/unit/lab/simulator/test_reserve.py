"""Tests that state is seldom moved under a load with jumps: its partitions leave room for more slots."""

from __future__ import annotations

import pytest
from attrs import evolve

from spark_elastic_lab.simulator.query import QuerySpec
from tests.unit.lab.simulator.scenes import only, scenario

pytestmark = pytest.mark.long


@pytest.mark.parametrize("seed", range(3))
def test_a_leap_up_is_no_time_for_fewer_partitions(seed: int) -> None:
    # Every 20 minutes one slot is suddenly too few; some of the others are there at once, the rest start
    # later.
    leaping = evolve(
        scenario(QuerySpec(name="counts", load="square:scale=60"), hours=2), max_lag_s=60, seed=seed
    )
    found = only(leaping, "autoscale")
    assert found.notes.reasons["autoscale_up_backlog"] >= 6
    assert found.metrics.rescales <= 4
