"""Tests of the loop between a scripted driver and a small policy."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

import pytest

from spark_elastic.core.actions import Action, Configure, Rescale, SetTimer, TurnOff
from spark_elastic.core.events import (
    ActionDone,
    CancelRequested,
    Event,
    ExecutorRemoved,
    Snapshot,
    TimerFired,
)
from spark_elastic.core.settings import CoreSettings
from spark_elastic.runtime.clock import SteadyClock
from spark_elastic.runtime.entries import EventEntry, read_journal
from spark_elastic.runtime.journal import Journal
from spark_elastic.runtime.loop import Loop
from spark_elastic.runtime.port import Exchange
from spark_elastic.settings import Settings
from spark_elastic.wire import encode_event
from tests.unit.runtime.memory_gateway import MemoryGateway, SteppedClock
from tests.unit.runtime.support import START, CountingPolicy, added, snapshot


class Scene:
    """A loop whose driver plays `events` for ten seconds."""

    def __init__(self, *events: Event, journal: Path | None = None) -> None:
        self.clock = SteppedClock(START)
        self.gateway = MemoryGateway(self.clock, end=START + 10_000)
        self.gateway.offer(*events)
        self.policies: list[CountingPolicy] = []
        self._journal = journal
        self.loop = Loop(self.gateway, self.clock, self._make, self._open)

    def run(self) -> list[Action]:
        self.loop.run()
        return self.gateway.actions

    def _make(self, settings: CoreSettings) -> CountingPolicy:
        self.policies.append(CountingPolicy(settings))
        return self.policies[-1]

    def _open(self, settings: Settings, first: Snapshot) -> Journal:
        return Journal(self._journal, application=first.application, settings=settings, max_size=1 << 20)


def test_settings_of_the_snapshot_reach_the_policy_and_its_answer_the_driver() -> None:
    scene = Scene(snapshot({"spark.elastic.start-timeout": "7s", "spark.master": "local"}))
    (configure,) = scene.run()
    assert isinstance(configure, Configure)
    assert configure.start_wait_ms == 7_000
    assert len(scene.policies) == 1


def test_a_timer_comes_back_as_an_event_at_its_time_and_never_leaves() -> None:
    scene = Scene(snapshot(), added(1, START + 100), added(2, START + 700))
    actions = scene.run()
    assert not [action for action in actions if isinstance(action, SetTimer)]
    (change,) = [action for action in actions if isinstance(action, Rescale)]
    assert change == Rescale(id="a4", cause="r1", query="q", run="r", partitions=2)


def test_a_timer_fires_with_the_time_that_it_was_set_for(tmp_path: Path) -> None:
    journal = tmp_path / "j.jsonl"
    Scene(snapshot(), added(1, START + 100), journal=journal).run()
    events = [entry.event for _, entry in read_journal(journal) if isinstance(entry, EventEntry)]
    assert events[-1] == TimerFired(id="r1", at=START + 1_100, timer="settle")


@pytest.mark.parametrize("leap", [-3_600_000, 3_600_000])
def test_a_clock_that_leaps_leaps_for_nobody(tmp_path: Path, leap: int) -> None:
    """Driver and policy process share one machine and thus one clock."""
    wall, monotonic = START, 0

    class Driver:
        def exchange(self, actions: object, wait_ms: int) -> Exchange:
            nonlocal wall, monotonic
            wall, monotonic = wall + 600, monotonic + 600
            if monotonic == 600:
                return Exchange(events=(encode_event(snapshot(at=wall)),))
            if monotonic == 1_200:
                return Exchange(events=(encode_event(added(1, wall)),))
            if monotonic == 1_800:
                wall += leap
            return Exchange(stop=monotonic > 3_000)

    journal = tmp_path / "j.jsonl"
    clock = SteadyClock(lambda: wall, lambda: monotonic)
    Loop(Driver(), clock, CountingPolicy, lambda _settings, _first: Journal(journal, max_size=1 << 20)).run()
    events = [entry.event for _, entry in read_journal(journal) if isinstance(entry, EventEntry)]
    assert [event.at - START for event in events] == [600, 1_200, 2_400]
    assert isinstance(events[-1], TimerFired)


def test_a_cancelled_timer_stays_silent() -> None:
    gone = ExecutorRemoved(id="s3", at=START + 500, executor="1")
    actions = Scene(snapshot(), added(1, START + 100), gone).run()
    assert [type(action) for action in actions] == [Configure]


def test_what_follows_from_an_action_comes_back_through_the_same_door(tmp_path: Path) -> None:
    def done(action: Action, now: int) -> Iterable[Event]:
        return [ActionDone(id=f"d{action.id}", at=now + 5, action=action.id, took_ms=5)]

    clock = SteppedClock(START)
    gateway = MemoryGateway(clock, end=START + 10_000, world=done)
    gateway.offer(snapshot())
    journal = tmp_path / "j.jsonl"
    Loop(gateway, clock, CountingPolicy, lambda *_: Journal(journal, max_size=1 << 20)).run()
    events = [entry.event for _, entry in read_journal(journal) if isinstance(entry, EventEntry)]
    assert [type(event) for event in events] == [Snapshot, ActionDone]


def test_settings_that_cannot_be_used_turn_the_policy_off_with_all_errors_in_one_line() -> None:
    scene = Scene(
        snapshot({"spark.elastic.nonsense": "1", "spark.elastic.adviseOnly": "perhaps"}),
        added(1, START + 100),
    )
    (off,) = scene.run()
    assert isinstance(off, TurnOff)
    assert off.cause == "s1"
    assert "spark.elastic.nonsense" in off.message
    assert "'perhaps'" in off.message
    assert "\n" not in off.message
    assert scene.policies == []


def test_mode_off_in_any_spelling_turns_the_policy_off() -> None:
    (off,) = Scene(snapshot({"spark.elastic.scheduler-mode": "OFF"})).run()
    assert isinstance(off, TurnOff)


def test_what_is_not_understood_is_left_out_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(snapshot(), added(1, START + 100))
    scene.gateway.offer_raw({"type": "MoonRose", "id": "s7", "at": START + 50}, START + 50)
    scene.gateway.offer_raw({"type": "ExecutorAdded", "id": "s8", "at": "late"}, START + 60)
    with caplog.at_level(logging.WARNING, "spark_elastic"):
        scene.run()
    assert scene.loop.skipped == 2
    assert scene.policies[0].executors == 1
    assert "MoonRose" in caplog.text


def test_what_comes_before_the_first_snapshot_is_left_out() -> None:
    scene = Scene(added(1, START), snapshot(at=START + 10))
    scene.run()
    assert scene.loop.skipped == 1
    assert scene.policies[0].executors == 0


def test_an_event_that_breaks_the_policy_is_the_last_line_of_the_journal(tmp_path: Path) -> None:
    journal = tmp_path / "j.jsonl"
    cancel = CancelRequested(id="s2", at=START + 5, query="q", by="somebody")
    with pytest.raises(RuntimeError, match="ends no queries"):
        Scene(snapshot(), cancel, journal=journal).run()
    *_, (_, last) = read_journal(journal)
    assert last == EventEntry(event=cancel)


def test_merged_and_dropped_events_are_reported_when_they_double(caplog: pytest.LogCaptureFixture) -> None:
    class Losing:
        def __init__(self) -> None:
            self._counts = iter([(0, 0), (1, 0), (2, 0), (2, 1), (4, 1), (4, 2), (4, 4)])

        def exchange(self, actions: object, wait_ms: int) -> Exchange:
            merged, dropped = next(self._counts)
            return Exchange(merged=merged, dropped=dropped, stop=dropped == 4)

    with caplog.at_level(logging.WARNING, "spark_elastic"):
        Loop(Losing(), SteppedClock(), CountingPolicy, lambda _settings, _first: Journal(None)).run()
    assert [record.args for record in caplog.records] == [(1, 0), (2, 1), (4, 4)]
