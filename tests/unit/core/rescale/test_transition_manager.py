"""Tests of the transition manager beyond the vectors: its memory, late events, durations of zero."""

from __future__ import annotations

import pytest
from attrs import define

from spark_elastic.core.rescale.transition_manager import TransitionManager


@define
class World:
    """Fixed answers to the manager's questions, which are counted."""

    enough: bool = False
    all: bool = False

    def sufficient(self) -> bool:
        return self.enough

    def desired(self) -> bool:
        return self.all


def manager(
    cooldown_ms: int = 30_000, stabilization_ms: int = 10_000, delay_ms: int = 1_500
) -> TransitionManager:
    return TransitionManager(
        created=0, cooldown_ms=cooldown_ms, stabilization_ms=stabilization_ms, max_delay_ms=delay_ms
    )


def test_a_change_that_did_not_suffice_in_the_cooldown_is_judged_again_at_its_end() -> None:
    world, timing = World(), manager()
    assert not timing.change(5_000, world)
    world.enough = True
    assert not timing.advance(30_000, world)
    assert timing.phase == "Stabilizing"
    assert timing.waits_until == 40_000
    assert timing.advance(40_000, world)


def test_without_any_change_the_cooldown_ends_idle() -> None:
    world, timing = World(enough=True), manager()
    assert not timing.advance(30_000, world)
    assert (timing.phase, timing.due, timing.waits_until) == ("Idling", None, None)


def test_with_no_waiting_times_a_change_is_carried_out_at_once() -> None:
    world, timing = World(enough=True), manager(0, 0, 0)
    assert timing.change(0, world)
    assert timing.phase == "Transitioning"


def test_a_late_clock_does_everything_that_was_due_in_order() -> None:
    world, timing = World(enough=True), manager()
    timing.change(5_000, world)
    assert timing.advance(1_000_000, world)


@pytest.mark.parametrize("way", ["change", "trigger"])
def test_what_is_due_comes_before_what_happens(way: str) -> None:
    world, timing = World(enough=True), manager()
    timing.change(5_000, world)
    assert getattr(timing, way)(60_000, world)


def test_nothing_is_counted_twice_once_it_is_decided() -> None:
    world, timing = World(enough=True), manager(0, 0, 0)
    timing.change(0, world)
    assert not timing.change(1, world)
    assert not timing.trigger(1, world)
    timing.validate()


def test_when_stabilized_a_change_is_left_to_the_trigger() -> None:
    world, timing = World(enough=True), manager(0, 1_000, 60_000)
    timing.change(10, world)
    timing.advance(1_010, world)
    assert timing.phase == "Stabilized"
    assert not timing.change(1_020, world)
    assert timing.trigger(1_030, world)
