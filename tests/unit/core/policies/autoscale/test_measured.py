"""Tests that measurements are evaluated once, since most queries have no new micro-batch at a decision."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from attrs import evolve

from spark_elastic.core.policies.autoscale import measured
from spark_elastic.core.policies.autoscale.model import BatchTime, fit
from spark_elastic.core.policies.autoscale.query_metrics import Findings
from spark_elastic.core.policies.autoscale.wishes import Autoscale
from spark_elastic.core.policies.view import Sample
from spark_elastic.core.scheduler import Scheduler
from tests.unit.core.builder import STATEFUL
from tests.unit.core.policies.seen import NOW, SETTINGS, batches, query, view
from tests.unit.core.policies.world import World


def test_only_the_query_with_a_new_batch_is_computed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counted(samples: Sequence[Sample]) -> BatchTime | None:
        asked.append(len(samples))
        return fit(samples)

    monkeypatch.setattr(measured, "fit", counted)
    many = [evolve(query(batches(9, 1_001 + number, 4)), query=f"q{number}") for number in range(50)]
    policy = Autoscale()
    first = policy.decide(view(*many))
    assert len(asked) == 50
    asked.clear()
    again = [evolve(one, held=False) for one in many]
    assert policy.decide(view(*again)) == first
    assert asked == []
    newest = evolve(many[7].samples[-1], at=NOW, started=NOW - 500)
    again[7] = evolve(again[7], samples=(*again[7].samples, newest))
    policy.decide(view(*again))
    assert asked == [10]


def test_of_all_slots_those_are_needed_with_which_the_batches_are_in_time() -> None:
    # 600 ms on the 16 slots of all queries are 900 ms on 11; a load of 90 % allows 900 ms of the interval.
    busy = query(tuple(evolve(one, total=16) for one in batches(6, 2_000, 4)), settings={"target_load": 0.9})
    found = Findings.of(busy, 4, 30_000.0, NOW).evaluated
    assert found is not None
    fixed = min(found.known.model.fixed_ms, 60.0)
    assert found.of_all_slots == pytest.approx(16 * (600 - fixed) / (900 - fixed))
    unknown = Findings.of(query(batches(6, 2_000, 4)), 4, 30_000.0, NOW).evaluated
    assert unknown is not None
    assert unknown.of_all_slots == 0.0, "how many slots there were is unknown"


def test_what_was_saved_and_restored_is_decided_about() -> None:
    world = World()
    world.start(2)
    world.query(lambda _: 4_000)
    world.run(60)
    restored = Scheduler.restore(json.loads(json.dumps(world.scene.scheduler.save())))
    samples = restored._planner._memories["q"].samples
    assert samples
    assert samples == world.scene.scheduler._planner._memories["q"].samples
    world.scene.scheduler = restored
    world.run(60)
    assert restored.queries["q"].granted_slots


CHANGES: dict[str, dict[str, Any]] = {
    "batches": {"samples": batches(6, 4_000, 4)},
    "earlier batches": {"earlier": batches(6, 4_000, 4, fixed=3_000)},
    "grant": {"granted": 2},
    "partitions": {"partitions": 3, "movable": False},
    "pauses": {"pauses_ms": (50_000,)},
    "limit": {"throttled": True},
    "settings": {"settings": evolve(SETTINGS, target_load=0.2)},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_was_found_out_counts_only_while_it_holds(change: dict[str, Any]) -> None:
    facts = evolve(STATEFUL, query="q", trigger_ms=1_000)
    before = query(batches(6, 2_000, 4, behind=30_000), facts=facts, partitions=16)
    policy = Autoscale()
    first = policy.decide(view(before))
    after = view(evolve(before, **change))
    assert policy.decide(after) == Autoscale().decide(after) != first
    assert policy.decide(view(before)) == first
