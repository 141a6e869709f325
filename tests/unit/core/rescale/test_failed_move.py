"""Tests that a failed move is retried with growing pauses, and at once when resources change."""

from __future__ import annotations

import pytest

from spark_elastic.core.actions import Rescale
from spark_elastic.core.rescale.failed import FailedMove
from tests.unit.core.builder import Scene, decisions, orders, reasons
from tests.unit.core.query.reached import rescaling

MINUTE_MS = 60_000


def failures(move: FailedMove, times: int, count: int = 4) -> list[int]:
    """Let a move fail this many times, each time on its retry; return the pauses in minutes."""
    now, pauses = 1_000, []
    for _ in range(times):
        move.failed(count, now)
        assert move.again_at is not None
        assert move.to_avoid(move.again_at - 1) == count
        assert move.to_avoid(move.again_at) is None
        pauses.append((move.again_at - now) // MINUTE_MS)
        now = move.again_at
        move.validate()
    return pauses


def test_it_is_tried_again_after_a_minute_then_after_longer_pauses_and_not_for_ever() -> None:
    move = FailedMove()
    assert failures(move, 5) == [1, 2, 4, 8, 16]
    move.failed(4, 1 << 40)
    move.validate()
    assert move.to_avoid(1 << 60) == 4
    move.may_try_again()
    move.validate()
    assert move.to_avoid(0) is None


def test_a_failure_that_is_told_of_twice_counts_once() -> None:
    move = FailedMove()
    move.failed(4, 1_000)
    move.failed(4, 3_000)
    assert (move.again_at, move.failures) == (1_000 + MINUTE_MS, 1)
    move.failed(None, 5_000)
    assert move.to_avoid(5_000) == 4


def test_where_it_may_be_tried_at_once_the_next_pause_is_the_longer_one_all_the_same() -> None:
    move = FailedMove()
    move.failed(4, 1_000)
    move.may_try_again()
    move.validate()
    assert move.to_avoid(1_001) is None
    assert failures(move, 1, count=6) == [2]


def test_a_pause_without_a_failure_is_found() -> None:
    with pytest.raises(AssertionError):
        FailedMove(count=4).validate()


def test_a_rescale_whose_storage_was_away_is_tried_again_with_the_same_slots(scene: Scene) -> None:
    rescaling(scene)
    for minutes in (1, 2, 4, 8, 16):
        order = scene.last_order("Rescale")
        assert order is not None
        scene.fail(order, "the storage is away")
        pause_ms = minutes * MINUTE_MS
        for _ in range(pause_ms // 5_000 - 1):
            assert orders(scene.advance(5_000) + scene.batch(312, 2)) == []
        again = scene.advance(5_000) + scene.batch(312, 2)
        while not orders(again):  # resources have to stabilize first, as always
            pause_ms += 5_000
            assert pause_ms < (minutes + 1) * MINUTE_MS
            again = scene.advance(5_000) + scene.batch(312, 2)
        (rescale,) = (action for action in again if isinstance(action, Rescale))
        assert rescale.partitions == 4
    scene.rescaled()
    assert scene.query().partitions == 4
    assert scene.query().rescaled == 1


def test_a_query_with_nothing_to_read_is_tried_again_by_the_clock_alone_and_left_alone_at_last(
    scene: Scene,
) -> None:
    rescaling(scene)
    began = scene.now
    for _ in range(5):
        order = scene.last_order("Rescale")
        assert order is not None
        scene.fail(order, "its rows are elsewhere")
        scene.until_rescale()
    assert 31 * MINUTE_MS <= scene.now - began < 36 * MINUTE_MS
    order = scene.last_order("Rescale")
    assert order is not None
    given_up = scene.fail(order, "its rows are elsewhere")
    assert reasons(given_up) == ["rescale_given_up"]
    assert decisions(given_up)[0].message == (
        "Could not scale to 4 partitions, continuing as before until slots or bounds change: "
        "its rows are elsewhere"
    )
    with pytest.raises(AssertionError, match="nothing is waited for"):
        scene.until_rescale()
    for _ in range(100):
        assert orders(scene.advance(MINUTE_MS) + scene.batch(312, 2)) == []
    scene.executor("2", cores=2)
    (rescale,) = (action for action in scene.until_rescale() if isinstance(action, Rescale))
    assert rescale.partitions == 6
