"""Tests of the golden files, the contract: the shim reads actions and writes events without loss."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from integration.streaming.bare_jvm import bare_jvm
from tests.contract.test_shim_vocabulary import ONLY_IN_PYTHON

pytestmark = pytest.mark.integration

GOLDEN = Path(__file__).parents[2] / "tests" / "contract" / "golden"


def read(name: str) -> list[dict[str, Any]]:
    result = json.loads((GOLDEN / name).read_text())
    assert isinstance(result, list)
    return [value for value in result if value["type"] not in ONLY_IN_PYTHON]


EVENTS = read("events.json")
ACTIONS = read("actions.json")


class Shim:
    """The shim's reader and writer of JSON text."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm
        self._contract = jvm.org.apache.spark.elastic.Contract
        self._mapper = self._contract.mapper()

    def read_action(self, value: Any) -> dict[str, Any]:
        action = self._contract.readAction(self._mapper.readTree(json.dumps(value)))
        understood: dict[str, Any] = json.loads(self._mapper.valueToTree(action).toString())
        return {"type": action.getClass().getSimpleName(), **understood}

    def again(self, kind: str, value: dict[str, Any]) -> dict[str, Any]:
        """Read an object of a class of the shim and write it again."""
        cls = self._jvm.java.lang.Class.forName(f"org.apache.spark.elastic.{kind}")
        read = self._mapper.treeToValue(self._mapper.readTree(json.dumps(value)), cls)
        written: dict[str, Any] = json.loads(self._mapper.valueToTree(read).toString())
        return written

    def gauges(self) -> Callable[..., dict[str, float]]:
        """Return a function that updates the metrics, if given, and returns the values of the gauges."""
        registry = self._jvm.com.codahale.metrics.MetricRegistry()
        metrics = self._jvm.org.apache.spark.elastic.PolicyMetrics()
        metrics.show(registry)

        def tell(value: dict[str, float] | None = None) -> dict[str, float]:
            if value is not None:
                metrics.update(self._mapper.readTree(json.dumps(value)))
            return {str(name): float(gauge.getValue()) for name, gauge in registry.getGauges().items()}

        return tell

    def write_event(self, value: dict[str, Any]) -> dict[str, Any]:
        cls = self._jvm.java.lang.Class.forName(f"org.apache.spark.elastic.{value['type']}")
        event = self._mapper.treeToValue(self._mapper.readTree(json.dumps(value)), cls)
        written: dict[str, Any] = json.loads(self._contract.write(event, value["id"], value["at"]).toString())
        return written


@pytest.fixture(scope="module")
def shim() -> Iterator[Shim]:
    with bare_jvm() as jvm:
        yield Shim(jvm)


@pytest.mark.parametrize("value", ACTIONS, ids=lambda value: f"{value['type']}-{value['id']}")
def test_the_shim_reads_all_of_an_action(shim: Shim, value: dict[str, Any]) -> None:
    # The cause of an action is only for the journal.
    expected = {key: field for key, field in value.items() if key != "cause"}
    assert shim.read_action(value) == expected


@pytest.mark.parametrize("value", EVENTS, ids=lambda value: value["type"])
def test_the_shim_writes_an_event_as_it_is_agreed(shim: Shim, value: dict[str, Any]) -> None:
    assert shim.write_event(value) == value


@pytest.mark.parametrize(("name", "kind"), [("request", "HttpRequest"), ("answer", "HttpAnswer")])
def test_the_shim_understands_http_as_it_is_agreed(shim: Shim, name: str, kind: str) -> None:
    value = json.loads((GOLDEN / "http.json").read_text())[name]
    if kind == "HttpRequest":
        # These are added when the request is queued.
        del value["id"], value["left_ms"]
    assert shim.again(kind, value) == value


def test_metrics_are_gauges_as_long_as_they_are_told(shim: Shim) -> None:
    golden = json.loads((GOLDEN / "metrics.json").read_text())
    gauges = shim.gauges()
    assert gauges() == {"slots": 0.0}
    assert gauges(golden) == golden
    assert gauges({"executors": 1}) == {"slots": 0.0, "executors": 1.0}
    assert gauges(golden) == golden


def test_numbers_keep_their_kind(shim: Shim) -> None:
    progress = next(value for value in EVENTS if value["type"] == "QueryProgress")
    report = next(value for value in ACTIONS if value["type"] == "Report")
    written = shim.write_event(progress)
    numbers = shim.read_action(report)["decision"]["numbers"]
    assert {key: type(number) for key, number in written.items()} == {
        key: type(number) for key, number in progress.items()
    }
    assert [type(number) for number in numbers.values()] == [int, float, str]


@pytest.mark.parametrize("name", ["SetTimer", "Nonsense", None])
def test_an_action_that_is_none_of_the_shims_is_refused_with_the_list_of_those(
    shim: Shim, name: str | None
) -> None:
    value = {"id": "a1"} if name is None else {"type": name, "id": "a1"}
    with pytest.raises(Py4JJavaError) as refusal:
        shim.read_action(value)
    text = str(refusal.value.java_exception.getMessage())
    assert f"unknown action '{name or ''}'" in text
    for known in {value["type"] for value in ACTIONS}:
        assert known in text


def test_fields_that_are_not_known_are_ignored(shim: Shim) -> None:
    known = {"type": "CancelQuery", "id": "a1", "query": "q", "run": "r"}
    assert shim.read_action({**known, "colour": "green"}) == known
