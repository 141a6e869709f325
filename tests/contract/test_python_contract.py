"""Tests of the golden files, the contract: they are read and written back unchanged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_elastic import wire
from spark_elastic.core.events import Event, QueryProgress
from spark_elastic.http.metrics import flat
from spark_elastic.http.wsgi import HttpAnswer, decode_request, encode_answer
from spark_elastic.wire import ACTION_TYPES, EVENT_TYPES
from tests.unit.http.world import world

GOLDEN = Path(__file__).parent / "golden"


def read(name: str) -> list[dict[str, Any]]:
    result = json.loads((GOLDEN / name).read_text())
    assert isinstance(result, list)
    return result


EVENTS = read("events.json")
ACTIONS = read("actions.json")


@pytest.mark.parametrize("value", EVENTS, ids=lambda value: value["type"])
def test_an_event_comes_back_as_it_was(value: dict[str, Any]) -> None:
    written = wire.encode_event(wire.decode_event(value))
    assert json.loads(json.dumps(written)) == value


@pytest.mark.parametrize("value", ACTIONS, ids=lambda value: value["type"])
def test_an_action_comes_back_as_it_was(value: dict[str, Any]) -> None:
    written = wire.encode_action(wire.decode_action(value))
    assert json.loads(json.dumps(written)) == value


def test_an_http_request_and_its_answer_are_understood() -> None:
    golden = json.loads((GOLDEN / "http.json").read_text())
    request = decode_request(golden["request"])
    assert request.body == '{"a": "ü"}'.encode()
    assert (request.may_modify, request.left_ms, request.user) == (True, 9_990, "alice")
    assert request.headers == golden["request"]["headers"]
    assert list(request.hosts) == golden["request"]["hosts"]
    assert list(request.proxies) == golden["request"]["proxies"]
    assert encode_answer(HttpAnswer(**golden["answer"])) == golden["answer"]


def test_metrics_for_the_metrics_system_have_the_names_that_are_agreed() -> None:
    golden = json.loads((GOLDEN / "metrics.json").read_text())
    with world() as running:
        assert running.publisher.view is not None
        found = flat(running.publisher.view)
    assert {name: found.get(name) for name in golden} == golden


def test_every_type_has_an_example() -> None:
    assert {value["type"] for value in EVENTS} == {cls.__name__ for cls in EVENT_TYPES}
    assert {value["type"] for value in ACTIONS} == {cls.__name__ for cls in ACTION_TYPES}


def test_numbers_of_a_decision_keep_their_type() -> None:
    decision = wire.encode_action(wire.decode_action(ACTIONS[-2]))["decision"]
    assert [type(number) for number in decision["numbers"].values()] == [int, float, str]


def test_unknown_fields_are_ignored_and_absent_ones_take_their_default() -> None:
    progress = wire.decode_event(
        {
            "type": "QueryProgress", "id": "s1", "at": 5, "query": "q", "run": "r", "batch": 1, "started":
            1, "duration_ms": 4, "partitions": 2, "colour": "green",
        }
    )  # fmt: skip
    assert progress == QueryProgress(
        id="s1", at=5, query="q", run="r", batch=1, started=1, duration_ms=4, partitions=2
    )


def test_a_whole_number_serves_as_a_fraction() -> None:
    value = {
        **next(value for value in EVENTS if value["type"] == "QueryProgress"),
        "input_rows_per_second": 2000,
    }
    progress = wire.decode_event(value)
    assert isinstance(progress, QueryProgress)
    assert progress.input_rows_per_second == 2000.0


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"type": "Nonsense", "id": "s1", "at": 1}, "unknown event type 'Nonsense'"),
        ({"id": "s1", "at": 1}, "unknown event type None"),
        ({"type": "TimerFired", "id": "s1", "at": 1}, "timer"),
        ({"type": "TimerFired", "id": "s1", "at": "1", "timer": "t1"}, "expected int, got '1'"),
        ({"type": "TimerFired", "id": "s1", "at": True, "timer": "t1"}, "expected int, got True"),
    ],
)
def test_what_breaks_the_contract_is_refused_by_name(value: dict[str, Any], says: str) -> None:
    with pytest.raises(wire.WireError, match=says):
        wire.decode_event(value)


def test_a_class_outside_the_contract_is_not_written() -> None:
    with pytest.raises(wire.WireError, match="Event has no place"):
        wire.encode_event(Event(id="s1", at=1))
