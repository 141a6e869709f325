"""Tests of the player of journals: what it reports of runs, parts, states and recorded actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from spark_elastic import __version__
from spark_elastic.core.events import CancelRequested, Event
from spark_elastic.runtime.entries import (
    ActionsEntry,
    Entry,
    EventEntry,
    Header,
    StateEntry,
    Unreadable,
)
from spark_elastic.runtime.replay import (
    Failed,
    Handled,
    LeftOut,
    Outcome,
    PartsMissing,
    Player,
    RunBegun,
    StateRefused,
    StateRestored,
    Step,
)
from tests.unit.runtime.support import START, CountingPolicy, added


def header(part: int = 0, settings: Mapping[str, str] | None = None) -> Header:
    return Header(version=__version__, application="app-1", part=part, settings=settings or {})


def state(**saved: Any) -> StateEntry:
    return StateEntry(state={"actions": 0, "start_wait_ms": 1, **saved}, own_events=0, last_event="s1")


def event(number: int) -> EventEntry:
    return EventEntry(event=added(number, START + number))


def steps(*entries: Entry) -> list[Step]:
    placed = [(str(number), entry) for number, entry in enumerate(entries)]
    return list(Player(CountingPolicy).play(placed))


def kinds(*entries: Entry) -> list[type]:
    return [type(step) for step in steps(*entries)]


def test_an_event_is_told_with_what_was_recorded_about_it() -> None:
    _, handled, outcome, _, nothing = steps(header(), event(1), ActionsEntry(actions=()), event(2), event(3))[
        :5
    ]
    assert isinstance(handled, Handled)
    assert (handled.place, len(handled.actions)) == ("1", 1)
    assert outcome == Outcome(handled=handled, recorded=())
    assert isinstance(nothing, Outcome)
    assert nothing.handled.place == "3"


def test_a_process_that_was_killed_before_it_wrote_has_no_outcome() -> None:
    assert kinds(header(), event(1)) == [RunBegun, Handled]
    assert kinds(header(), event(1), header(), event(2)) == [RunBegun, Handled, RunBegun, Handled]
    assert kinds(header(), event(1), header(part=1)) == [RunBegun, Handled, Outcome]


def test_a_state_counts_where_a_run_begins_with_it_or_what_was_before_is_gone() -> None:
    begins, event_, further = steps(header(), state(executors=3), event(1), state(executors=9))[1:]
    assert isinstance(begins, StateRestored)
    assert begins.begins
    assert isinstance(event_, Handled)
    assert isinstance(further, Outcome)
    assert kinds(header(part=4), event(1), state(executors=3), event(2)) == [
        PartsMissing,
        LeftOut,
        StateRestored,
        Handled,
    ]
    assert kinds(header(), header(part=1), event(1)) == [RunBegun, Handled]
    assert kinds(header(), header(part=2), event(1)) == [RunBegun, PartsMissing, LeftOut]


def test_a_state_that_is_refused_waits_for_the_next_one() -> None:
    told = steps(header(), state(), event(1), state(executors=1))
    assert told[1] == StateRefused(
        place="1", reason="the saved state cannot be loaded: nobody has counted", begins=True
    )
    assert [type(step) for step in told[2:]] == [LeftOut, StateRestored]


def test_what_the_policy_raises_is_told_and_the_rest_waits_to_be_asked_for() -> None:
    canceled: Event = CancelRequested(id="s9", at=START, query="q", by="somebody")
    (failed,) = steps(header(), EventEntry(event=canceled))[1:]
    assert isinstance(failed, Failed)
    assert (failed.place, str(failed.error)) == ("1", "this policy ends no queries")
    player = Player(CountingPolicy)
    list(player.play([("0", header()), ("1", event(1))]))
    assert isinstance(next(player.read(event(2))), Outcome)
    assert player.policy is not None
    assert player.policy.executors == 1


def test_what_is_no_journal_of_this_version_is_refused_with_its_place() -> None:
    with pytest.raises(Unreadable, match=r"^0: a journal must start with its header"):
        steps(event(1))
    with pytest.raises(Unreadable, match=r"^0: its settings are of another version: spark\.elastic\.no"):
        steps(header(settings={"spark.elastic.no": "1"}))
