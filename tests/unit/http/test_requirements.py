"""The bounds of a query over HTTP: what is taken, what is refused, what is journaled before the answer."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from spark_elastic.core import events as ev
from spark_elastic.core.actions import BoundSources, Report, Rescale
from spark_elastic.runtime.entries import EventEntry, read_journal
from spark_elastic.runtime.journal import Journal
from tests.unit.core.builder import STATELESS
from tests.unit.http.world import ADAPTIVE, API, COUNTS, ID, REQUIREMENTS, World, body, world

FLINK = f"{API}/jobs/{ID.replace('-', '')}/resource-requirements"
# The same for every run and every version: clients keep them.
SHUFFLE_ID = "9f6307ef4ac8e9f66646e779613bb811"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[World]:
    conf = {**ADAPTIVE, "spark.elastic.rest.allowedHosts": "proxy"}
    with world(conf, journal=lambda: Journal(tmp_path / "journal", max_size=1 << 20)) as running:
        yield running


def asked(folder: Path) -> list[ev.Event]:
    """Return the requests in the journal."""
    events = [e.event for _, e in read_journal(folder / "journal") if isinstance(e, EventEntry)]
    return [e for e in events if isinstance(e, ev.RequirementsRequested)]


@pytest.mark.parametrize("path", [REQUIREMENTS, FLINK])
def test_what_get_returns_put_takes_and_it_is_in_the_journal_when_the_answer_comes(
    api: World, tmp_path: Path, path: str
) -> None:
    bounds = api.get(path).json
    vertex = SHUFFLE_ID if path == FLINK else "shuffle"
    assert bounds == body(1, 32_768, vertex)
    bounds[vertex]["parallelism"]["upperBound"] = 3
    reply = api.put(path, bounds)
    assert (reply.status, reply.json) == (200, {})
    (event,) = asked(tmp_path)
    assert isinstance(event, ev.RequirementsRequested)
    assert (event.query, event.bounds, event.by) == (ID, {"shuffle": (1, 3)}, "someone at 10.0.0.1")
    assert api.get(path).json == bounds
    assert api.get(f"{API}/queries/{ID}").json["requirements"] == body(1, 3)


def test_sources_have_bounds_which_a_body_may_leave_out() -> None:
    kafka = ev.SourceFacts(name="kafka", divisible=True)
    with world(queries=(evolve(COUNTS, sources=(kafka, kafka)),)) as running:
        whole = running.get(REQUIREMENTS).json
        assert list(whole) == ["shuffle", "source-0", "source-1"]
        whole["source-1"]["parallelism"] = {"lowerBound": 2, "upperBound": -1}
        assert running.put(REQUIREMENTS, whole).status == 200
        assert running.put(REQUIREMENTS, body(1, 3)).status == 200
        now = running.get(REQUIREMENTS).json
        assert now["shuffle"]["parallelism"] == {"lowerBound": 1, "upperBound": 3}
        assert now["source-1"]["parallelism"] == {"lowerBound": 2, "upperBound": 32_768}
        running.shim.settle()
        (order,) = [a for a in running.shim.actions if isinstance(a, BoundSources)]
        assert [(bounds.least, bounds.most) for bounds in order.sources] == [(1, 32_768), (2, 32_768)]
        refused = running.put(REQUIREMENTS, {**body(1, 3), **body(1, 3, "source-2")})
        assert (refused.status, "'source-2' is not a vertex of this query" in refused.errors) == (400, True)
        query = running.get(f"{API}/queries/{ID}").json
        assert query["sources"] == ["kafka", "kafka"]


def test_each_vertex_has_an_id_for_clients_of_flink() -> None:
    sources = (ev.SourceFacts(name="rate"),) * 2
    with world(queries=(evolve(COUNTS, sources=sources), evolve(COUNTS, query="other"))) as running:
        ids = running.get(f"{API}/queries/{ID}").json["vertexIds"]
        assert list(ids) == ["shuffle", "source-0", "source-1"]
        assert ids["shuffle"] == SHUFFLE_ID
        assert all(re.fullmatch("[0-9a-f]{32}", id) for id in ids.values())
        assert len({*ids.values(), running.get(f"{API}/queries/other").json["vertexIds"]["shuffle"]}) == 4
        assert list(running.get(FLINK).json) == list(ids.values())
        assert running.get(FLINK).headers["etag"] == running.get(REQUIREMENTS).headers["etag"]


@pytest.mark.parametrize("path", [REQUIREMENTS, FLINK])
@pytest.mark.parametrize("called", [str.lower, str.upper])
def test_a_body_may_call_vertices_by_their_ids(api: World, path: str, called: Callable[[str], str]) -> None:
    assert api.put(path, body(2, 5, called(SHUFFLE_ID))).status == 200
    assert api.bounds() == (2, 5)


def test_by_its_name_and_by_its_id_a_vertex_is_there_twice(api: World, tmp_path: Path) -> None:
    reply = api.put(REQUIREMENTS, {**body(1, 2), **body(1, 3, SHUFFLE_ID)})
    assert [problem["code"] for problem in reply.json["problems"]] == ["vertex_said_twice"]
    assert f"vertex shuffle is there twice, by its name or id {SHUFFLE_ID}" in reply.errors
    assert asked(tmp_path) == []


def test_an_id_of_another_query_is_no_vertex_of_this_one(api: World) -> None:
    reply = api.put(FLINK, body(1, 2, "0" * 32))
    assert reply.status == 400
    assert f"'{'0' * 32}' is not a vertex of this query" in reply.errors


def test_flinks_clients_read_refusals_of_errors_alone(api: World) -> None:
    assert api.put(FLINK, body(0, 2)).json.keys() == {"errors"}
    assert api.put(REQUIREMENTS, body(0, 2)).json.keys() == {"errors", "problems"}


def test_the_change_is_carried_out_and_names_who_asked() -> None:
    with world(queries=(STATELESS,)) as running:
        path = f"{API}/queries/enrich/resource-requirements"
        headers = {"Content-Type": "application/json"}
        said = running.request(
            "PUT", path, headers=headers, body=b'{"shuffle":{"parallelism":{"lowerBound":1,"upperBound":3}}}',
            user="alice",
        )  # fmt: skip
        assert said.status == 200
        running.shim.settle()
        assert [a.partitions for a in running.shim.actions if isinstance(a, Rescale)] == [3]
        told = [a.decision.message for a in running.shim.actions if isinstance(a, Report)]
        assert "New bounds from alice: shuffle 1 to 3." in told


def test_no_bound_is_expanded_before_it_is_stored(api: World, tmp_path: Path) -> None:
    assert api.put(REQUIREMENTS, body(-1, -1)).status == 200
    assert [event.bounds for event in asked(tmp_path)] == [{"shuffle": (1, 32_768)}]  # type: ignore[attr-defined]
    assert api.bounds() == (1, 32_768)


@pytest.mark.parametrize(
    ("sent", "codes"),
    [
        (b"{", []),
        (b"", []),
        (b"\xff\xfe{}", []),
        (b"[" * 60_000, []),
        (b'{"shuffle": 1, "shuffle": 2}', []),
        (b"9" * 5_000, []),
        (b"{}", ["empty_body"]),
        (b"[]", ["wrong_type"]),
        (b"null", ["wrong_type"]),
        (b'{"shuffle": {"parallelism": {"lowerBound": NaN, "upperBound": 1e999}}}', ["wrong_type"] * 2),
        (b'{"\\ud800": {"parallelism": {"lowerBound": 1, "upperBound": 2}}}', None),
        (body(0, 5), ["not_positive"]),
        (body(9, 5), ["lower_above_upper"]),
        (body(40_001, 40_000), ["lower_above_upper", "above_max_parallelism"]),
        (body(1, 5, "v1"), ["unknown_vertex", "missing_vertex"]),
        ({**body(0, 5), **body(1, 5, "v1")}, ["not_positive", "unknown_vertex"]),
        ({"shuffle": {"parallelism": {"lowerBound": "1"}}, "x": 1}, None),
        ({f"v{n}": {} for n in range(5_000)}, None),
    ],
)
def test_a_body_that_cannot_be_used_is_refused_with_all_that_is_wrong(
    api: World, tmp_path: Path, sent: object, codes: list[str] | None
) -> None:
    reply = api.put(REQUIREMENTS, sent)
    assert reply.status == 400
    problems = reply.json.get("problems", [])
    if codes is None:
        assert len(problems) > 1
    else:
        assert [problem["code"] for problem in problems] == codes
    assert asked(tmp_path) == []
    assert api.bounds() == (1, 32_768)


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "", "x/json"])
def test_what_does_not_say_that_it_is_json_is_refused(api: World, tmp_path: Path, content_type: str) -> None:
    assert api.put(REQUIREMENTS, body(1, 2), Content_Type=content_type).status == 415
    assert asked(tmp_path) == []


def test_json_may_name_its_charset(api: World) -> None:
    assert api.put(REQUIREMENTS, body(1, 2), Content_Type="Application/JSON; charset=UTF-8").status == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://proxy:8080", "Host": "driver:4040"}, 200),
        ({"Origin": "http://evil.example", "Host": "driver:4040"}, 403),
        ({"Origin": "null", "Host": "driver:4040"}, 403),
        ({"Origin": "http://[", "Host": "driver:4040"}, 403),
        ({"Origin": "http://driver:4041", "Host": "driver:4040"}, 403),
        ({"Origin": "http://Driver:4040", "Host": "driver:4040"}, 200),
        ({"Origin": "http://proxy:8080", "Host": "driver:4040", "X-Forwarded-Host": "proxy:8080"}, 200),
        ({"Origin": "http://proxy:8080", "Forwarded": 'for=10.0.0.2;host="proxy:8080";proto=http'}, 200),
        ({"Origin": "http://evil.example", "Forwarded": 'host="proxy:8080"'}, 403),
    ],
)
def test_a_page_of_another_origin_changes_nothing(api: World, headers: dict[str, str], status: int) -> None:
    assert api.put(REQUIREMENTS, body(1, 2), **headers).status == status


@pytest.mark.parametrize(
    "host",
    [
        "driver",
        "DRIVER.:4040",
        "localhost:4040",
        "127.0.0.1:4040",
        "10.1.2.3",
        "[::1]:4040",
        "proxy",
        "m.org",
    ],
)
def test_a_driver_is_asked_by_its_own_names_and_those_that_are_allowed(api: World, host: str) -> None:
    for site in ({}, {"Sec-Fetch-Site": "same-origin"}, {"Origin": f"http://{host}"}):
        headers = {"Content-Type": "application/json", "Host": host, **site}
        sent = json.dumps(body(1, 2)).encode()
        names = ("driver", "M.org")
        assert api.request("PUT", REQUIREMENTS, body=sent, headers=headers, hosts=names).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example:4040"},
        {"Host": "evil.example:4040", "Origin": "http://evil.example:4040"},
        {"Host": "evil.example:4040", "Sec-Fetch-Site": "same-origin"},
        {"Host": "driver.evil.example", "Sec-Fetch-Site": "same-origin"},
        {"Host": "driver@evil.example", "Sec-Fetch-Site": "same-origin"},
        {"Host": "127.0.0.1.evil.example", "Sec-Fetch-Site": "same-origin"},
        {"Host": "[", "Sec-Fetch-Site": "same-origin"},
        {"Host": ":4040", "Sec-Fetch-Site": "same-origin"},
        {"Host": "driver:4040", "X-Forwarded-Host": "evil.example", "Origin": "http://evil.example"},
        {"Host": "driver:4040", "X-Forwarded-Host": "proxy, evil.example", "Sec-Fetch-Site": "same-origin"},
        {"Host": "driver:4040", "Forwarded": "host=evil.example:8080", "Sec-Fetch-Site": "same-origin"},
    ],
)
def test_a_name_that_somebody_has_led_here_changes_nothing(
    api: World, tmp_path: Path, headers: dict[str, str]
) -> None:
    reply = api.put(REQUIREMENTS, body(1, 2), **headers)
    assert reply.status == 403
    assert "set spark.elastic.rest.allowedHosts" in reply.errors
    assert asked(tmp_path) == []
    assert api.get(REQUIREMENTS, headers=headers).status == 200


@pytest.mark.parametrize(
    ("origin", "status"), [("http://rm-2:8088", 200), ("http://RM:8088", 200), ("http://rm:8042", 403)]
)
def test_a_page_behind_yarns_proxy_changes_something(api: World, origin: str, status: int) -> None:
    headers = {"Content-Type": "application/json", "Origin": origin, "Host": "driver:4040"}
    bases = ("http://rm:8088/proxy/application_1_1", "http://rm-2:8088/proxy/application_1_1")
    sent = json.dumps(body(1, 2)).encode()
    reply = api.request("PUT", REQUIREMENTS, body=sent, headers=headers, proxies=bases)
    assert reply.status == status
    assert status == 200 or f"open the page at {bases[0]}/elastic/ or {bases[1]}/elastic/" in reply.errors


def test_who_may_not_modify_is_told_what_it_takes(api: World, tmp_path: Path) -> None:
    reply = api.request("PUT", REQUIREMENTS, may_modify=False, user="mallory")
    assert reply.status == 403
    assert "mallory may not" in reply.errors
    assert "spark.modify.acls" in reply.errors
    assert asked(tmp_path) == []


def test_read_only_refuses_every_change() -> None:
    with world({**ADAPTIVE, "spark.elastic.rest.read-only": "true"}) as running:
        for reply in (
            running.put(REQUIREMENTS, body(1, 2)),
            running.post(f"{API}/queries/{ID}/stop"),
        ):
            assert reply.status == 403
            assert "spark.elastic.rest.readOnly" in reply.errors
        assert running.get(f"{API}/overview").json["readOnly"] is True


def test_reactive_mode_has_no_bounds_to_declare(tmp_path: Path) -> None:
    with world({}, journal=lambda: Journal(tmp_path / "journal", max_size=1 << 20)) as running:
        before = running.get(REQUIREMENTS).json
        for sent in (body(1, 2), {}):
            reply = running.put(REQUIREMENTS, sent)
            assert reply.status == 409
            assert "spark.elastic.schedulerMode=adaptive" in reply.errors
        assert running.get(REQUIREMENTS).json == before
    assert asked(tmp_path) == []


def test_a_query_that_is_not_there_or_has_ended_has_no_bounds(api: World) -> None:
    assert api.put(f"{API}/queries/nobody/resource-requirements", body(1, 2)).status == 404
    api.send(ev.QueryTerminated, query=ID, run="r1")
    assert api.put(REQUIREMENTS, body(1, 2)).status == 409


def test_if_match_guards_against_lost_updates(api: World) -> None:
    etag = api.get(REQUIREMENTS).headers["etag"]
    assert api.put(REQUIREMENTS, body(1, 2), If_Match=etag).status == 200
    reply = api.put(REQUIREMENTS, body(1, 5), If_Match=etag)
    assert reply.status == 412
    assert api.bounds() == (1, 2)
    fresh = api.get(REQUIREMENTS).headers["etag"]
    assert fresh in reply.errors
    assert api.put(REQUIREMENTS, body(1, 4), If_Match=f'"other", {fresh}').status == 200
    assert api.put(REQUIREMENTS, body(1, 5), If_Match="*").status == 200


def test_a_change_while_a_request_waits_for_the_loop_is_a_lost_update_too(api: World) -> None:
    """The policy file may say something new while a request is on its way to the loop."""
    etag = api.get(REQUIREMENTS).headers["etag"]
    api.shim.deaf = True
    replies: list[int] = []

    def write(upper: int) -> None:
        replies.append(api.put(REQUIREMENTS, body(1, upper), If_Match=etag).status)

    writers = [threading.Thread(target=write, args=(upper,)) for upper in (2, 3)]
    for writer in writers:
        writer.start()
    api.until_asked(2)
    api.shim.deaf = False
    api.shim.wake()
    for writer in writers:
        writer.join()
    assert sorted(replies) == [200, 412]


def test_a_loop_that_stands_is_unavailable_and_the_change_never_happens(api: World, tmp_path: Path) -> None:
    api.shim.deaf = True
    headers = {"Content-Type": "application/json"}
    sent = b'{"shuffle":{"parallelism":{"lowerBound":1,"upperBound":2}}}'
    reply = api.request("PUT", REQUIREMENTS, headers=headers, body=sent, left_ms=600)
    assert reply.status == 503
    assert reply.headers["retry-after"] == "1"
    # Reads continue meanwhile.
    assert api.bounds() == (1, 32_768)
    api.shim.deaf = False
    api.shim.settle()
    assert asked(tmp_path) == []
    assert api.bounds() == (1, 32_768)


def test_what_cannot_be_journaled_is_not_done(tmp_path: Path) -> None:
    full = tmp_path / "journal"
    full.symlink_to("/dev/full")
    with world(journal=lambda: Journal(full, max_size=1 << 20)) as running:
        reply = running.put(REQUIREMENTS, body(1, 2))
        assert reply.status == 500
        assert "journal" in reply.errors
        assert running.bounds() == (1, 32_768)


def test_bounds_above_the_applications_maximum_are_refused() -> None:
    with world({**ADAPTIVE, "spark.elastic.maxParallelism": "10"}, queries=(evolve(COUNTS),)) as running:
        reply = running.put(REQUIREMENTS, body(1, 11))
        assert (reply.status, [p["code"] for p in reply.json["problems"]]) == (400, ["above_max_parallelism"])
        assert running.put(REQUIREMENTS, body(1, 10)).status == 200


@pytest.mark.parametrize("path", [REQUIREMENTS, FLINK])
def test_delete_takes_back_what_was_set(api: World, tmp_path: Path, path: str) -> None:
    api.put(REQUIREMENTS, body(1, 3))
    tag = api.get(REQUIREMENTS).headers["etag"]
    assert api.request("DELETE", path, headers={"If-Match": '"another"'}).status == 412
    assert api.bounds() == (1, 3)
    reply = api.request("DELETE", path, headers={"If-Match": tag})
    assert (reply.status, reply.json) == (200, {})
    assert api.bounds() == (1, 32_768)
    events = [e.event for _, e in read_journal(tmp_path / "journal") if isinstance(e, EventEntry)]
    (dropped,) = [event for event in events if isinstance(event, ev.RequirementsDropped)]
    assert (dropped.query, dropped.by) == (ID, "someone at 10.0.0.1")


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"may_modify": False}, 403),
        ({"headers": {"Sec-Fetch-Site": "cross-site"}}, 403),
        ({"headers": {"Origin": "http://evil.example"}}, 403),
    ],
)
def test_who_may_not_write_may_not_delete(api: World, more: dict[str, Any], status: int) -> None:
    api.put(REQUIREMENTS, body(1, 3))
    assert api.request("DELETE", REQUIREMENTS, **more).status == status
    assert api.bounds() == (1, 3)


def test_in_reactive_mode_there_is_nothing_to_take_back() -> None:
    with world({}) as running:
        assert running.request("DELETE", REQUIREMENTS).status == 409
