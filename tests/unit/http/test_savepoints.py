"""Tests of savepoints over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from attrs import evolve

from spark_elastic.core import events as ev
from spark_elastic.core.actions import TakeSavepoint
from tests.unit.core.builder import snapshot
from tests.unit.http.world import ADAPTIVE, API, COUNTS, ID, Reply, World, world

SAVEPOINTS = f"{API}/queries/{ID}/savepoints"
SAVED: dict[str, Any] = {"path": "file:/s/savepoint-7", "batch": 7, "bytes": 12}
ALLOWED = {**ADAPTIVE, "spark.elastic.savepoint.allowedPrefixes": "/s"}


@pytest.fixture
def api() -> Iterator[World]:
    with world(ALLOWED) as running:
        yield running


def ordered(api: World) -> list[TakeSavepoint]:
    api.shim.settle()
    return [action for action in api.shim.actions if isinstance(action, TakeSavepoint)]


def taken(api: World) -> TakeSavepoint:
    (action,) = ordered(api)
    return action


@pytest.mark.parametrize("ask", [World.post, World.put])
def test_one_is_taken_and_shown(api: World, ask: Callable[..., Reply]) -> None:
    assert api.get(SAVEPOINTS).json == {"savepoints": []}
    reply = ask(api, SAVEPOINTS, {"target": "/s"})
    assert (reply.status, reply.json) == (202, {})
    order = taken(api)
    assert (order.query, order.target, order.stop) == (ID, "/s", False)
    done = {"action": order.id, **SAVED}
    api.send(ev.SavepointTaken, query=ID, run="r1", **done)
    (shown,) = api.get(SAVEPOINTS).json["savepoints"]
    assert (shown["path"], shown["batch"], shown["bytes"]) == ("file:/s/savepoint-7", 7, 12)


def test_the_query_can_be_stopped_with_it(api: World) -> None:
    assert api.post(SAVEPOINTS, {"target": "/s", "stop": True}).status == 202
    order = taken(api)
    assert (order.query, order.target, order.stop) == (ID, "/s", True)
    assert api.get(f"{API}/queries/{ID}").json["state"] == "StopWithSavepoint"
    reply = api.post(SAVEPOINTS, {"target": "/s"})
    assert reply.status == 409
    assert "the query is StopWithSavepoint" in reply.errors


def test_its_state_can_have_another_format(api: World) -> None:
    assert api.post(SAVEPOINTS, {"target": "/s", "format": "hdfs"}).status == 202
    assert taken(api).format == "hdfs"


def test_a_spark_that_cannot_rewrite_state_gives_it_no_other_format() -> None:
    with world(ALLOWED, queries=[evolve(COUNTS, moves_state=False)]) as api:
        reply = api.post(SAVEPOINTS, {"target": "/s", "format": "hdfs"})
        assert reply.status == 409
        assert "rewriting state needs Spark 4.2 or later: leave format out" in reply.errors
        assert api.post(SAVEPOINTS, {"target": "/s"}).status == 202


@pytest.mark.parametrize("outcome", ["taken", "done", "failed"])
def test_one_is_taken_at_a_time(api: World, outcome: str) -> None:
    assert api.post(SAVEPOINTS, {"target": "/s"}).status == 202
    order = taken(api)
    for second in ({"target": "/s"}, {"target": "/s", "stop": True}):
        reply = api.post(SAVEPOINTS, second)
        assert reply.status == 409
        assert "a savepoint of the query is being taken: ask again when it is complete" in reply.errors
    if outcome == "taken":
        api.send(ev.SavepointTaken, action=order.id, query=ID, run="r1", **SAVED)
    elif outcome == "done":
        api.send(ev.ActionDone, action=order.id, query=ID, took_ms=5)
    else:
        api.send(ev.ActionFailed, action=order.id, query=ID, error="no space left")
    assert api.post(SAVEPOINTS, {"target": "/s"}).status == 202


def test_one_whose_outcome_may_have_got_lost_is_taken_again(api: World) -> None:
    assert api.post(SAVEPOINTS, {"target": "/s"}).status == 202
    running = ev.QueryInfo(facts=COUNTS, run="r1", run_state="running", partitions=4)
    executors = [ev.ExecutorInfo(executor=str(n), host="h", cores=2) for n in (1, 2)]
    api.send(ev.Snapshot, **{**snapshot(executors), "conf": ALLOWED, "queries": (running,)})
    first, second = ordered(api)
    assert (second.target, second.within) == (first.target, first.within)
    assert second.id != first.id
    assert api.post(SAVEPOINTS, {"target": "/s"}).status == 409
    api.send(ev.SavepointTaken, action=second.id, query=ID, run="r1", **SAVED)
    assert [shown["path"] for shown in api.get(SAVEPOINTS).json["savepoints"]] == [SAVED["path"]]
    assert api.post(SAVEPOINTS, {"target": "/s"}).status == 202


def test_without_a_target_it_goes_where_the_settings_say() -> None:
    with world({**ADAPTIVE, "spark.elastic.savepointDir": "hdfs://nn/s"}) as api:
        assert api.post(SAVEPOINTS).status == 202
        assert taken(api).target == "hdfs://nn/s"


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({}, "there is no target, and spark.elastic.savepointDir is not set"),
        ({"target": 7}, "target is no folder"),
        ({"target": " "}, "target is no folder"),
        ({"target": "/s", "stop": "yes"}, "stop is neither true nor false"),
        ({"target": "/s", "drain": True}, "'drain' is no field, allowed are target, format, stop"),
        ({"target": "/s", "format": "avro"}, "format is none of hdfs, rocksdb-1, rocksdb-2"),
        ({"target": "/s", "format": 2}, "format is none of hdfs, rocksdb-1, rocksdb-2"),
        ([], "the body is no object"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_done(api: World, sent: object, words: str) -> None:
    reply = api.post(SAVEPOINTS, sent)
    assert reply.status == 400
    assert words in reply.errors
    assert not [a for a in api.shim.actions if isinstance(a, TakeSavepoint)]


def test_a_savepoint_is_a_write_like_any_other(api: World) -> None:
    assert api.request("POST", SAVEPOINTS).status == 415
    assert api.request("POST", SAVEPOINTS, may_modify=False).status == 403
    assert api.post(f"{API}/queries/nobody/savepoints", {"target": "/s"}).status == 404
    assert api.request("PUT", SAVEPOINTS).status == 415
    assert api.request("DELETE", SAVEPOINTS).status == 405
