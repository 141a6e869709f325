"""Tests of Flink's paths for the rescales of a query: the same records as ours, in Flink's format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from spark_elastic.core.rescale.history import Cause
from spark_elastic.http.flink_rescales import _CAUSES, _STATS
from tests.unit.http.world import API, ID, World, body, world

JOBS = f"{API}/jobs/{ID.replace('-', '')}/rescales"
NONE = {"min": 0, "max": 0, "avg": 0, "p50": "NaN", "p90": "NaN", "p95": "NaN", "p99": "NaN", "p999": "NaN"}


@pytest.fixture
def api() -> Iterator[World]:
    with world() as running:
        yield running


def get(api: World, part: str) -> Any:
    reply = api.get(f"{JOBS}/{part}")
    assert reply.status == 200
    return reply.json


def test_they_are_the_records_that_our_own_path_has(api: World) -> None:
    api.put(f"{API}/queries/{ID}/resource-requirements", body(1, 3))
    own = api.get(f"{API}/queries/{ID}/rescales").json["rescales"]
    history = get(api, "history")
    assert own
    assert [(one["rescaleAttemptId"], one["startTimestampInMillis"]) for one in history] == [
        (one["attempt"], one["started"]) for one in own
    ]
    for flinks, ours in zip(history, own, strict=True):
        (vertex,) = flinks["vertices"].values()
        assert vertex["preRescaleParallelism"] == ours["partitionsBefore"]
        assert vertex["postRescaleParallelism"] == ours["partitionsAfter"]
        assert flinks["terminatedReason"] == (ours["reason"] and ours["reason"].upper())
        assert flinks["triggerCause"] == ours["cause"].upper()
        assert flinks["schedulerStates"] is None
        details = get(api, f"details/{flinks['rescaleUuid']}")
        assert {**details, "schedulerStates": None} == flinks
        assert [
            (state["state"], state["enterTimestampInMillis"]) for state in details["schedulerStates"]
        ] == [(state["state"], state["entered"]) for state in ours["states"]]
    assert len({one["rescaleUuid"] for one in history}) == len(history)


def test_the_vertex_has_the_id_under_which_its_bounds_are_set(api: World) -> None:
    api.put(f"{API}/queries/{ID}/resource-requirements", body(1, 3))
    newest = get(api, "history")[0]
    shuffle = api.get(f"{API}/queries/{ID}").json["vertexIds"]["shuffle"]
    vertex = newest["vertices"][shuffle]
    assert vertex["jobVertexId"] == shuffle
    assert list(newest["slots"]) == [vertex["slotSharingGroupId"]]


def test_they_are_counted_by_what_became_of_them(api: World) -> None:
    overview, summary = get(api, "overview"), get(api, "summary")
    own = [one["status"] for one in api.get(f"{API}/queries/{ID}/rescales").json["rescales"]]
    names = {"inProgress": "in_progress", "completed": "completed", "failed": "failed", "ignored": "ignored"}
    assert overview["rescalesCounts"] == {name: own.count(status) for name, status in names.items()}
    assert summary["rescalesCounts"] == overview["rescalesCounts"]
    for status, latest in overview["latest"].items():
        assert (latest is None) == (status not in own)
    assert summary["failedRescalesDurationStatsInMillis"] == NONE


def test_what_is_not_there_is_not_found(api: World) -> None:
    assert api.get(f"{JOBS}/details/{'0' * 32}").status == 404
    assert api.get(f"{API}/jobs/{'0' * 32}/rescales/overview").status == 404
    assert api.get(f"{JOBS}/config").status == 404


def test_durations_are_summed_up_as_flink_does() -> None:
    assert _STATS.json([]) == NONE
    assert _STATS.json([7]) == {
        "min": 7,
        "max": 7,
        "avg": 7,
        **dict.fromkeys(("p50", "p90", "p95", "p99", "p999"), 7.0),
    }
    of_ten = _STATS.json([10, 20, 30, 40, 50, 60, 70, 80, 90, 100])
    assert (of_ten["min"], of_ten["max"], of_ten["avg"]) == (10, 100, 55)
    assert of_ten["p50"] == 55.0
    assert of_ten["p90"] == pytest.approx(99.0)
    assert of_ten["p999"] == 100.0


def test_each_cause_has_a_name_that_flink_knows() -> None:
    assert set(_CAUSES) == set(Cause.__args__)  # type: ignore[attr-defined]
    known = {"INITIAL_SCHEDULE", "UPDATE_REQUIREMENT", "NEW_RESOURCE_AVAILABLE", "RECOVERABLE_FAILOVER"}
    assert set(_CAUSES.values()) == known
