"""Tests of choices: nothing to do, in place or restart, each with its numbers, and none that oscillates."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from hypothesis import given
from hypothesis import settings as example_settings
from hypothesis import strategies as st

from spark_elastic.core.bounds.requirements import Bounds
from spark_elastic.core.declarations import adaptive_requirements, reactive_requirements
from spark_elastic.core.events import SourceFacts
from spark_elastic.core.rescale.gain import Measurements, fit
from spark_elastic.core.rescale.parallelism import choose_running, choose_start
from spark_elastic.core.rescale.situation import Gain, MoveCost, Situation
from spark_elastic.core.settings import CoreSettings
from tests.unit.core.builder import STATEFUL


def situation(partitions: int, slots: int, batch_ms: int | None = None, **change: Any) -> Situation:
    """Describe a stateful query that was measured with this count on this number of slots."""
    settings = change.pop("settings", CoreSettings())
    measured_slots = change.pop("measured_slots", slots)
    measurements = Measurements()
    if batch_ms is not None:
        measurements.add(
            batch=1, partitions=partitions, slots=measured_slots, duration_ms=batch_ms, rows=1000
        )
    known = Situation(
        facts=STATEFUL,
        provider="rocksdb",
        checkpoint_format=2,
        partitions=partitions,
        slots=slots,
        requirements=reactive_requirements(STATEFUL, settings),
        model=fit(measurements, "rocksdb"),
        settings=settings,
    )
    return evolve(known, **change)


def test_from_two_slots_to_three() -> None:
    choice = choose_running(situation(2, 3, 312, measured_slots=2))
    assert (choice.way, choice.partitions) == ("move", 3)
    assert choice.numbers["before_ms"] == 312.0
    assert choice.numbers["after_ms"] == 268.0
    assert choice.alternatives == ((1, 444.0), (2, 312.0), (6, 348.0))


def test_a_query_with_little_work_stays_when_a_slot_comes() -> None:
    choice = choose_running(situation(2, 3, 200, measured_slots=2))
    assert (choice.way, choice.reason) == ("nothing", "gain_too_small")


def test_much_work_in_few_more_waves_stays() -> None:
    choice = choose_running(situation(4, 2, 5260))
    assert (choice.way, choice.reason) == ("nothing", "gain_too_small")
    assert choice.after == 2


def test_frequent_rescales_have_to_pay_sooner() -> None:
    dear = situation(2, 3, 312, measured_slots=2, cost=MoveCost(pause_ms=30_000))
    assert choose_running(dear).way == "move"
    choice = choose_running(evolve(dear, rescales=3))
    assert choice.reason == "cost_too_high"
    assert choice.numbers["horizon_ms"] == 150_000


def gain(**change: float) -> Gain:
    facts: dict[str, Any] = {
        "before_ms": 312.0,
        "after_ms": 268.0,
        "batches": 60.0,
        **change,
    }
    cost = MoveCost(pause_ms=1_500)
    return Gain(slots=3, horizon_ms=600_000, cost=cost, min_increase=1, **facts)


def test_a_gain_is_compared_as_it_is_and_rounded_where_it_is_written() -> None:
    assert gain().shortfall() is None
    # Rounded to tenths of a millisecond, the comparison would come out the other way.
    small = gain(before_ms=10.04, after_ms=9.5396, batches=10_000.0)
    assert small.shortfall() == "gain_too_small"
    assert (small.numbers()["before_ms"], small.numbers()["saved_ms"]) == (10.0, 0.5)
    enough = gain(before_ms=3000.08, after_ms=1500.04, batches=1.0)
    assert enough.shortfall() is None
    assert (enough.numbers()["saved_total_ms"], enough.numbers()["cost_ms"]) == (1500.0, 1_500)
    assert gain(batches=1.0).shortfall() == "cost_too_high"


def test_saved_time_counts_even_where_a_batch_fits_its_trigger() -> None:
    facts = evolve(STATEFUL, trigger_ms=10_000)
    assert choose_running(situation(8, 2, 584, facts=facts)).way == "move"


def test_a_checkpoint_with_the_default_count_is_moved_without_any_measurement() -> None:
    choice = choose_start(situation(200, 2))
    assert (choice.partitions, choice.reason) == (2, "start_repartitioned")


def test_always_follows_the_slots() -> None:
    always = CoreSettings(rescale_policy="always")
    assert choose_running(situation(2, 32, 312, settings=always)).partitions == 32
    assert choose_running(situation(2, 32, 312)).partitions == 19


def test_a_small_increase_waits_unless_it_is_overdue() -> None:
    patient = CoreSettings(min_parallelism_increase=3)
    now = situation(2, 4, 2000, settings=patient, measured_slots=2)
    assert choose_running(now).reason == "increase_too_small"
    assert choose_running(evolve(now, overdue=True)).way == "move"
    assert choose_running(situation(4, 2, 2000, settings=patient)).reason != "increase_too_small"


def test_what_is_overdue_grows_to_all_slots_whatever_the_model_expects() -> None:
    for now, reason in (
        (situation(2, 3, 200, measured_slots=2), "gain_too_small"),
        (situation(2, 3, 312, measured_slots=2, cost=MoveCost(pause_ms=10**9)), "cost_too_high"),
        (evolve(situation(2, 32, 312), partitions=19), "gain_too_small"),
    ):
        assert choose_running(now).reason == reason
        choice = choose_running(evolve(now, overdue=True))
        assert (choice.way, choice.partitions, choice.reason) == ("move", now.slots, "rescale_overdue")
        grown = evolve(now, partitions=now.slots, overdue=True)
        assert choose_running(grown).way == "nothing"


def test_what_is_overdue_does_not_shrink_for_that() -> None:
    now = situation(4, 2, 5260, overdue=True)
    assert choose_running(now).reason == "gain_too_small"


def test_an_increase_counts_in_all_vertices_of_the_query() -> None:
    patient = CoreSettings(min_parallelism_increase=3)
    now = situation(2, 3, 2000, settings=patient, measured_slots=2)
    assert choose_running(now).reason == "increase_too_small"
    read = evolve(STATEFUL, sources=(SourceFacts(name="a"), SourceFacts(name="b")))
    grown = choose_running(evolve(now, facts=read))
    assert (grown.way, grown.numbers["increase"]) == ("move", 3)
    bounds = {"source-0": Bounds(upper=2)}
    bounded = evolve(now, facts=read, requirements=adaptive_requirements(read, patient, bounds))
    choice = choose_running(bounded)
    assert (choice.reason, choice.numbers["increase"]) == ("increase_too_small", 2)


@example_settings(max_examples=50)
@given(
    partitions=st.integers(1, 300),
    slots=st.integers(1, 300),
    batch_ms=st.integers(1, 100_000),
    always=st.booleans(),
)
def test_after_a_rescale_there_is_nothing_more_to_do(
    partitions: int, slots: int, batch_ms: int, always: bool
) -> None:
    """With the same slots and load, the first choice is the last one."""
    settings = CoreSettings(rescale_policy="always" if always else "gain")
    now = situation(partitions, slots, batch_ms, settings=settings)
    choice = choose_running(now)
    if choice.way == "move":
        assert choice.partitions is not None
        assert choose_running(evolve(now, partitions=choice.partitions)).way == "nothing"


def test_a_count_that_has_just_failed_is_not_tried_again() -> None:
    assert choose_start(situation(200, 2, failed_target=2)).reason == "failed_before"
    assert choose_running(situation(200, 2, 7990, failed_target=2)).reason == "failed_before"
