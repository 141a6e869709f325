"""Tests of failed micro-batches while a rescale waits for a committed one."""

from __future__ import annotations

import pytest

from spark_elastic.core.actions import Rescale
from spark_elastic.core.failures.strategy import FixedDelay
from tests.unit.core.builder import Scene, Stage, orders, reasons

AGAIN = FixedDelay(attempts=9, delay_ms=1_000)
HOUR_MS = 3_600_000


def waiting_for_a_batch(stage: Stage, **settings: int) -> Scene:
    """Bring a query to where a rescale waits only for a committed micro-batch."""
    scene = stage(restart=AGAIN, rescale_policy="always", max_delay_ms=HOUR_MS, **settings)
    scene.start(2)
    scene.running(2)
    scene.batches(300, 300, partitions=2)
    scene.advance(60_000)
    scene.executor("1")
    scene.advance(20_000)
    assert scene.query().state == "Executing"
    return scene


def fails(scene: Scene, offsets: str, error: str = "disk full") -> list[str]:
    """Let a micro-batch fail, and the query continue with it."""
    actions = scene.run_fails(error, offsets=offsets) + scene.advance(1_000) + scene.started(2)
    return [type(order).__name__ for order in orders(actions)]


def test_so_many_that_fail_are_as_good_as_one_that_is_committed(stage: Stage) -> None:
    scene = waiting_for_a_batch(stage, max_checkpoint_failures=3)
    for offsets in ("[1]", "[2]"):
        assert "Rescale" not in fails(scene, offsets)
    assert fails(scene, "[3]")[-1] == "Rescale"
    assert scene.query().target == 3


def test_two_are_enough_by_default(stage: Stage) -> None:
    scene = waiting_for_a_batch(stage)
    assert "Rescale" not in fails(scene, "[1]")
    assert fails(scene, "[2]")[-1] == "Rescale"


@pytest.mark.parametrize("offsets", ["", "[-]", "{s: -}"])
def test_what_was_not_planned_is_no_micro_batch(stage: Stage, offsets: str) -> None:
    scene = waiting_for_a_batch(stage)
    for number in range(5):
        assert "Rescale" not in fails(scene, offsets, f"no {'x' * number}")


def test_what_fails_on_slots_that_are_being_lost_is_not_the_batchs_failure(stage: Stage) -> None:
    scene = waiting_for_a_batch(stage)
    for number in range(3):
        scene.executor("2")
        scene.lose("2")
        assert "Rescale" not in fails(scene, f"[{number}]")


def test_before_anything_has_changed_none_is_counted(stage: Stage) -> None:
    scene = stage(restart=AGAIN, rescale_policy="always", max_delay_ms=HOUR_MS, max_checkpoint_failures=1)
    scene.start(2)
    scene.running(2)
    scene.batches(300, 300, partitions=2)
    scene.advance(60_000)
    fails(scene, "[1]")
    scene.executor("1")
    actions = scene.advance(20_000)
    assert not any(isinstance(order, Rescale) for order in orders(actions))
    assert fails(scene, "[2]")[-1] == "Rescale"


def test_a_failed_micro_batch_begins_no_cooldown_and_no_stabilization(stage: Stage) -> None:
    """A failed checkpoint does not either, in the model: the run continues."""
    scene = waiting_for_a_batch(stage)
    assert fails(scene, "[1]") == ["HoldQuery", "StartQuery"]
    actions = scene.batches(300, partitions=2)
    assert [type(order) for order in orders(actions)] == [Rescale]


def test_what_changes_while_the_query_stands_at_a_failure_counts_from_then(stage: Stage) -> None:
    scene = stage(restart=AGAIN, rescale_policy="always", max_delay_ms=HOUR_MS, max_checkpoint_failures=1)
    scene.start(2)
    scene.running(2)
    scene.batches(300, 300, partitions=2)
    scene.advance(60_000)
    scene.run_fails(offsets="[1]")
    scene.executor("1")
    scene.advance(1_000)
    assert reasons(scene.started(2)) == ["stabilizing"]
    scene.advance(10_000)
    assert fails(scene, "[2]")[-1] == "Rescale"


def test_a_rescale_that_a_failure_calls_off_begins_a_cooldown(stage: Stage) -> None:
    scene = waiting_for_a_batch(stage, max_checkpoint_failures=1)
    assert fails(scene, "[1]")[-1] == "Rescale"
    assert "Rescale" not in fails(scene, "[2]")
    assert reasons(scene.batches(300, partitions=2)) == []
    assert scene.query().state == "Executing"


def test_a_committed_micro_batch_ends_the_count(stage: Stage) -> None:
    scene = stage(
        restart=AGAIN, rescale_policy="always", max_delay_ms=HOUR_MS, executing_stabilization_ms=60_000
    )
    scene.start(2)
    scene.running(2)
    scene.batches(300, 300, partitions=2)
    scene.advance(60_000)
    scene.executor("1")
    fails(scene, "[1]")
    assert reasons(scene.batches(300, partitions=2)) == []
    scene.advance(60_000)
    assert "Rescale" not in fails(scene, "[2]")
    assert [type(order) for order in orders(scene.batches(300, partitions=2))] == [Rescale]
