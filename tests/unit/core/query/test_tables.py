"""Tests of the reaction tables: each state has a reaction to each event, and it accepts that event."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from spark_elastic.core import events as ev
from spark_elastic.core.events import ExecutorsUsed, StageCompleted
from spark_elastic.core.query import internal_events as inner
from spark_elastic.core.query.machine import INTAKE, STATES, at_once
from spark_elastic.core.query.record import State
from spark_elastic.core.query.states import Created
from spark_elastic.core.transitions import CREATED, TRANSITIONS
from spark_elastic.wire import EVENT_TYPES

ABOUT_QUERIES = {
    *(kind for kind in EVENT_TYPES if issubclass(kind, ev.QueryEvent | ev.ActionOutcome | ev.TimerFired)),
    *(ev.QuerySubmitted, ev.CancelRequested, ev.SavepointRequested, StageCompleted, ExecutorsUsed),
    *(inner.SlotsChanged, inner.BoundsChanged, inner.SettingsChanged, inner.Recovered, inner.Superseded),
    *(inner.MoveGranted, inner.MoveQueued),
}
"""The events of a query's lifetime."""


@pytest.mark.parametrize(
    "state", [state for state in STATES.values() if state.name != CREATED], ids=lambda state: state.name
)
def test_every_state_has_decided_about_every_event(state: type[State]) -> None:
    unmet = {inner.Recovered} if state.final else set()
    assert state.reactions.keys() == ABOUT_QUERIES - unmet
    assert all(why for why in state.reactions.values() if isinstance(why, str))


@pytest.mark.parametrize("state", STATES.values(), ids=lambda state: state.name)
def test_a_reaction_takes_the_event_that_it_stands_for(state: type[State]) -> None:
    for kind, reaction in state.reactions.items():
        assert not callable(reaction) or takes(reaction, kind)


def test_what_all_states_do_takes_the_event_that_it_stands_for() -> None:
    assert INTAKE.keys() <= ABOUT_QUERIES | {inner.Begun}
    for kind, does in INTAKE.items():
        assert does is at_once or takes(does, kind)


def takes(reaction: Callable[..., None], kind: type[Any]) -> bool:
    annotation = inspect.signature(reaction).parameters["event"].annotation
    return kind.__name__ in re.findall(r"\w+", annotation)


def test_a_query_is_created_only_to_begin() -> None:
    assert Created.reactions.keys() == {inner.Begun}


def test_all_states_are_in_the_table_of_transitions() -> None:
    assert list(STATES) == list(TRANSITIONS)
