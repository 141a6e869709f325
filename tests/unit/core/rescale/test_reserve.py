"""Tests of a query whose slots follow its load: it has spare partitions, and seldom moves its state."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from spark_elastic.core.bounds.requirements import Bounds
from spark_elastic.core.declarations import adaptive_requirements
from spark_elastic.core.rescale.gain import Measurements, fit
from spark_elastic.core.rescale.parallelism import choose_running, choose_start
from spark_elastic.core.rescale.situation import Choice, MoveCost, Situation
from spark_elastic.core.settings import CoreSettings
from tests.unit.core.builder import STATEFUL

SETTINGS = CoreSettings(mode="adaptive", policy=("autoscale",))
FACTS = evolve(STATEFUL, trigger_ms=10_000, session_partitions=200)


def situation(partitions: int | None, slots: int, batch_ms: int = 5_000, **change: Any) -> Situation:
    """Describe a stateful query with a trigger each ten seconds, measured with its current partitions."""
    measurements = Measurements()
    if partitions is not None:
        measured: dict[str, int] = {"partitions": partitions, "slots": slots}
        measurements.add(batch=1, **measured, duration_ms=batch_ms, rows=1_000)
    known = Situation(
        facts=FACTS,
        provider="rocksdb",
        checkpoint_format=2,
        partitions=partitions,
        slots=slots,
        requirements=adaptive_requirements(FACTS, SETTINGS, None),
        model=fit(measurements, "rocksdb"),
        settings=SETTINGS,
    )
    return evolve(known, **change)


def running(partitions: int, slots: int, **change: Any) -> Choice:
    return choose_running(situation(partitions, slots, **change))


def test_it_starts_with_more_partitions_than_slots() -> None:
    new = situation(None, 8, facts=evolve(FACTS, checkpoint_partitions=None))
    choice = choose_start(new)
    # Six partitions of 80 ms per slot take 5 % of ten seconds.
    assert (choice.reason, choice.partitions) == ("start_with_reserve", 48)


@pytest.mark.parametrize(
    ("change", "count"),
    [
        # spare partitions would cost more than 5 % of its time
        ({"facts": evolve(FACTS, trigger_ms=1_000)}, 8),
        ({"facts": evolve(FACTS, trigger_ms=0)}, 8),
        ({"facts": evolve(FACTS, session_partitions=20)}, 20),  # plain Spark uses no more
        ({"facts": evolve(FACTS, session_partitions=4)}, 8),
        ({"provider": "hdfs"}, 64),
        ({"settings": evolve(SETTINGS, policy=("declared",))}, 8),
        ({"settings": evolve(SETTINGS, rescale_policy="always")}, 8),
    ],
)
def test_the_reserve_is_no_larger_than_it_may_cost(change: dict[str, Any], count: int) -> None:
    assert choose_start(situation(None, 8, **change)).partitions == count


@pytest.mark.parametrize("slots", [4, 6, 10, 16, 24, 30, 36, 48])
def test_slots_come_and_go_without_a_move(slots: int) -> None:
    assert running(48, slots).reason == "reserve_left"


def test_state_is_moved_once_slots_would_stand_empty() -> None:
    choice = running(48, 80)
    assert (choice.way, choice.reason, choice.partitions) == ("move", "reserve_used_up", 200)


def test_state_is_moved_once_partitions_cost_slots_of_their_own() -> None:
    # 196 partitions of 80 ms keep 1.5 slots busy in each interval of ten seconds.
    choice = running(200, 2)
    assert (choice.way, choice.reason, choice.partitions) == ("move", "reserve_dear", 12)
    assert running(200, 2, cost=MoveCost(pause_ms=600_000)).reason == "reserve_left", "the pause costs more"


def test_partitions_are_not_dear_to_a_query_that_expects_slots() -> None:
    assert running(200, 2, expects_slots=True).reason == "reserve_left"
    assert running(48, 80, expects_slots=True).reason == "reserve_used_up", "more of them are no less used"


def test_it_is_moved_once_within_the_horizon_unless_its_batches_overrun() -> None:
    assert running(48, 80, rescales=1).reason == "moved_lately"
    assert running(48, 80, rescales=1, batch_ms=20_000).way == "move"
    assert running(48, 80, rescales=1, behind=True).way == "move", "they would, but for a limit"
    assert running(200, 2, rescales=1, batch_ms=20_000).reason == "moved_lately", "fewer are no help"


def test_bounds_count_before_a_reserve() -> None:
    narrow = adaptive_requirements(FACTS, SETTINGS, {"shuffle": Bounds(upper=12)})
    assert running(48, 8, requirements=narrow).reason == "rescale_into_bounds"
    assert choose_start(situation(None, 8, requirements=narrow)).partitions == 12


def test_what_failed_is_not_tried_again_at_once() -> None:
    assert running(48, 80, failed_target=200).reason == "failed_before"
