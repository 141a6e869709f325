"""Tests that timers fire in the order of their times, whatever was replaced or cancelled before."""

from __future__ import annotations

from spark_elastic.core.actions import SetTimer
from spark_elastic.runtime.loop import Timers


def due(timers: Timers, now: int) -> list[str]:
    result = []
    while (order := timers.pop_due(now)) is not None:
        result.append(order.timer)
    return result


def timer(name: str, at: int) -> SetTimer:
    return SetTimer(id="a1", cause="s1", timer=name, at=at)


def test_timers_come_due_in_the_order_of_their_time() -> None:
    timers = Timers()
    timers.set(timer("late", 30))
    timers.set(timer("early", 10))
    assert timers.next_at() == 10
    assert due(timers, 9) == []
    assert due(timers, 30) == ["early", "late"]
    assert timers.next_at() is None


def test_setting_a_timer_again_replaces_it() -> None:
    timers = Timers()
    timers.set(timer("t", 10))
    timers.set(timer("t", 20))
    assert due(timers, 15) == []
    timers.set(timer("t", 5))
    assert due(timers, 5) == ["t"]
    assert due(timers, 100) == []


def test_a_cancelled_timer_does_not_fire() -> None:
    timers = Timers()
    timers.set(timer("t", 10))
    timers.cancel("t")
    timers.cancel("unknown")
    assert timers.next_at() is None
    assert due(timers, 100) == []
    timers.set(timer("t", 10))
    assert due(timers, 100) == ["t"]
