"""Tests of an autoscaler that follows the desired slots: it settles near the fewest that are enough."""

from __future__ import annotations

from itertools import pairwise

import pytest
from attrs import evolve

from spark_elastic.core.events import QueryProgress
from spark_elastic.core.load.pace import Pace
from spark_elastic.core.query.demand import Workload, desired_slots, load
from spark_elastic.core.rescale.gain import Measurements, fit
from spark_elastic_lab.simulator.rivals.kubernetes import Hpa
from tests.unit.core.builder import STATELESS

TARGET = 0.75


class Cluster:
    """A stateless query: a micro-batch takes `fixed_ms`, and `cost_ms` of one slot per row."""

    def __init__(self, interval_ms: int, fixed_ms: int, cost_ms: float = 1.0) -> None:
        self.facts = evolve(STATELESS, trigger_ms=interval_ms)
        self.fixed_ms, self.cost_ms = fixed_ms, cost_ms
        self.hpa = Hpa(target=1, least=1, most=64, up_s=0, down_s=60)
        self.slots = 1
        self.pace = Pace()
        self.read_up_to = 0
        self.now = 0
        self.seen: list[int] = []

    def run(self, seconds: int, rows_per_s: float) -> None:
        """Let time pass while this many rows arrive."""
        end = self.now + seconds * 1_000
        while self.now < end:
            rows = int((self.now - self.read_up_to) * rows_per_s / 1_000)
            self.read_up_to = self.now
            took = int(self.fixed_ms + rows * self.cost_ms / self.slots)
            progress = QueryProgress(
                id="s", at=self.now + took, query="q", run="r", batch=0, started=self.now, duration_ms=took,
                input_rows=rows, partitions=self.slots,
            )  # fmt: skip
            self.pace = self.pace.after(progress, self.slots)
            step = max(1, self.facts.trigger_ms)
            self.now = max((self.now // step + 1) * step, self.now + took) if took else self.now + step
            self.slots = self.hpa.replicas(self.slots, desired_slots(self.workload, TARGET), self.now / 1_000)
            self.seen.append(self.slots)

    @property
    def workload(self) -> Workload:
        model = fit(Measurements(), self.facts.provider)
        return Workload(facts=self.facts, pace=self.pace, model=model, needed=1, most=1_000)

    def fewest(self, rows_per_s: float) -> int:
        """Return the fewest slots with which the load meets the target."""
        interval = self.facts.trigger_ms / 1_000
        room = TARGET * self.facts.trigger_ms - self.fixed_ms
        return max(1, -(-int(rows_per_s * interval * self.cost_ms) // int(room)))

    def turns(self) -> int:
        steps = [after - before for before, after in pairwise(self.seen) if after != before]
        return sum((a > 0) != (b > 0) for a, b in pairwise(steps))


@pytest.mark.parametrize(
    ("interval_ms", "fixed_ms"), [(1_000, 50), (1_000, 250), (5_000, 600), (30_000, 2_000)]
)
def test_it_comes_to_rest_near_the_fewest_that_do_and_follows_the_load(
    interval_ms: int, fixed_ms: int
) -> None:
    cluster = Cluster(interval_ms, fixed_ms)
    for rows_per_s in (3_000, 6_000, 3_000):
        cluster.run(1_800, rows_per_s)
        fewest = cluster.fewest(rows_per_s)
        # The autoscaler tolerates a tenth on either side.
        assert 0.9 * fewest <= cluster.slots <= 1.35 * fewest + 1
        now = load(cluster.workload)
        assert now is not None
        assert now <= TARGET + 0.1
        # The number of slots has settled.
        assert len(set(cluster.seen[-20:])) == 1
    assert cluster.turns() <= 3


def test_without_an_interval_it_comes_to_rest_too() -> None:
    cluster = Cluster(0, 150)
    slots = []
    for rows_per_s in (3_000, 6_000, 3_000):
        cluster.run(600, rows_per_s)
        slots.append(cluster.slots)
        assert len(set(cluster.seen[-20:])) == 1
        # Enough slots for the work, with a quarter of their time to spare.
        assert rows_per_s / 1_000 / TARGET - 1 <= cluster.slots <= rows_per_s / 1_000 / TARGET * 1.5 + 1
    assert slots[1] > slots[0]
    assert slots[2] <= slots[0] + 1
