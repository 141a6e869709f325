"""Tests of stopping a query over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from spark_elastic.core.actions import CancelQuery
from tests.unit.http.world import API, ID, Reply, World, world

STOP = f"{API}/queries/{ID}/stop"


@pytest.fixture
def api() -> Iterator[World]:
    with world() as running:
        yield running


@pytest.mark.parametrize("sent", [b"", {}])
@pytest.mark.parametrize("ask", [World.post, World.put])
def test_a_query_is_stopped_for_good_once(api: World, ask: Callable[..., Reply], sent: object) -> None:
    reply = ask(api, STOP, sent)
    assert (reply.status, reply.json) == (202, {})
    api.shim.settle()
    assert [a.query for a in api.shim.actions if isinstance(a, CancelQuery)] == [ID]
    assert api.get(f"{API}/queries/{ID}").json["state"] == "Finished"
    assert api.post(STOP).status == 409


def test_who_stopped_it_is_recorded(api: World) -> None:
    headers = {"Content-Type": "application/json"}
    assert api.request("POST", STOP, headers=headers, user="alice").status == 202
    (said,) = [d for d in api.get(f"{API}/decisions").json["decisions"] if d["reason"] == "canceling"]
    assert said["message"] == "Stopping, requested by alice."


@pytest.mark.parametrize("sent", [{"drain": True}, b"{", b"[]"])
def test_a_body_that_says_something_is_refused(api: World, sent: object) -> None:
    assert api.post(STOP, sent).status == 400
    assert api.get(f"{API}/queries/{ID}").json["state"] == "Executing"


def test_a_stop_is_a_write_like_any_other(api: World) -> None:
    assert api.request("POST", STOP).status == 415
    assert api.request("PUT", STOP).status == 415
    assert api.request("POST", STOP, may_modify=False).status == 403
    assert api.post(STOP, Origin="http://evil.example", Host="driver:4040").status == 403
    assert api.post(f"{API}/queries/nobody/stop").status == 404
    assert api.get(STOP).status == 405
    assert not [a for a in api.shim.actions if isinstance(a, CancelQuery)]
