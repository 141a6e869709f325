"""Tests of reading every resource, and of resources that do not exist."""

from __future__ import annotations

from typing import Any
from unittest.mock import ANY

import pytest
from attrs import evolve

from spark_elastic.core import events as ev
from spark_elastic.http.metrics import flat
from tests.unit.core.builder import STATELESS
from tests.unit.http.world import ADAPTIVE, API, AT_ONCE, COUNTS, ID, NOW, OLD_COUNTS, World, body, world


@pytest.fixture(scope="module")
def api() -> object:
    with world(queries=(COUNTS, evolve(STATELESS, name=None))) as running:
        running.send(ev.ExecutorExcluded, executor="2", reason="failed too often")
        failure = ev.Failure(error="disk full", causes=("java.io.IOException",), offsets="[7]")
        running.send(ev.QueryFailed, query="enrich", run="r1", failure=failure)
        running.send(
            ev.QueryProgress, query=ID, run="r1", batch=7, started=NOW - 300, duration_ms=300,
            input_rows=40, input_rows_per_second=80.0, partitions=4,
            offsets_behind=ev.OffsetsBehind(avg=2.5, max=4, min=1),
        )  # fmt: skip
        yield running


def test_the_overview_shows_mode_slots_executors_and_states(api: World) -> None:
    shown = api.get(f"{API}/overview").json
    assert shown["mode"] == "adaptive"
    assert shown["slots"] == {"now": 2, "desired": None}
    assert [(e["id"], e["excluded"], e["exclusion"]) for e in shown["executors"]] == [
        ("1", False, None),
        ("2", True, "failed too often"),
    ]
    assert shown["queries"] == {"Executing": 1, "Restarting": 1}
    assert shown["policyRestarts"] == 3
    assert shown["application"] == {"id": "app-1", "name": "test"}


def test_the_overview_shows_which_queries_wait_and_why() -> None:
    with world(queries=()) as running:
        assert running.get(f"{API}/overview").json["held"] == {"count": 0, "decisions": []}
        names = [f"q{number}" for number in range(7)]
        for name in names:
            running.send(ev.QuerySubmitted, facts=evolve(STATELESS, query=name, name=name), run="r1")
            bounds = f"{API}/queries/{name}/resource-requirements"
            assert running.put(bounds, body(9, 9)).status == 200
        held = running.get(f"{API}/overview").json["held"]
        assert held["count"] == 7
        assert [decision["name"] for decision in held["decisions"]] == names[:1:-1]
        assert {decision["kind"] for decision in held["decisions"]} == {"held"}
        # A query that has ended does not wait.
        running.send(ev.QueryTerminated, query="q6", run="r1")
        held = running.get(f"{API}/overview").json["held"]
        assert (held["count"], held["decisions"][0]["name"]) == (6, "q5")


@pytest.mark.parametrize(("price", "cost"), [("0.25", 2.0), ("0", 0.0), (None, None)])
def test_the_overview_shows_what_executors_have_been_there_for_and_what_that_cost(
    price: str | None, cost: float | None
) -> None:
    conf = {} if price is None else {"spark.elastic.pricePerCoreHour": price}
    with world(conf, queries=()) as running:
        # Two executors of two cores for two hours.
        running.send(ev.ExecutorAdded, executor="3", host="h", cores=2, at=NOW + 7_200_000)
        usage = running.get(f"{API}/overview").json["usage"]
        assert usage == {"since": NOW, "executorHours": 4.0, "coreHours": 8.0, "cost": cost}


def test_the_overview_shows_which_parts_are_on_and_why_others_are_off() -> None:
    with world(parts={"savepoints": "", "warm-up": "no Warm"}) as running:
        assert running.get(f"{API}/overview").json["parts"] == [
            {"name": "savepoints", "on": True, "reason": None},
            {"name": "warm-up", "on": False, "reason": "no Warm"},
        ]


def test_the_overview_shows_what_its_spark_is_without_besides_parts_that_are_off() -> None:
    with world(parts={"rescales of state": "no Mover"}, spark="4.0.5") as running:
        (lack,) = running.get(f"{API}/overview").json["lacks"]
        assert lack == {"what": ANY, "why": ANY, "instead": ANY, "since": "4.1"}
        assert lack["what"] == "adaptive execution in streams without state"
    with world(spark="4.0.5") as running:
        told = running.get(f"{API}/overview").json["lacks"]
        assert [lack["since"] for lack in told] == ["4.2", "4.1"]
    with world() as running:
        assert running.get(f"{API}/overview").json["lacks"] == []


def test_queries_are_listed_and_shown_one_by_one(api: World) -> None:
    listed = api.get(f"{API}/queries").json["queries"]
    assert [(q["id"], q["name"], q["state"]) for q in listed] == [
        (ID, "counts", "Executing"),
        ("enrich", None, "Restarting"),
    ]
    shown = api.get(f"{API}/queries/{ID}").json
    assert shown == listed[0]
    assert shown["partitions"] == 4
    assert shown["requirements"] == api.get(f"{API}/queries/{ID}/resource-requirements").json
    assert shown["lastBatch"]["inputRowsPerSecond"] == 80.0
    assert shown["lastBatch"]["offsetsBehind"] == {"avg": 2.5, "max": 4, "min": 1}
    assert shown["lastDecision"]["query"] == ID


@pytest.mark.parametrize(
    ("facts", "reason", "words"),
    [
        (OLD_COUNTS, "no_repartition_unconverted", "spark.elastic.stateStore.convert=atStart"),
        (evolve(OLD_COUNTS, provider_chosen=True), "no_repartition_chosen", "checkpoint convert CHECKPOINT"),
        (evolve(OLD_COUNTS, moves_state=False), "no_repartition_spark", "needs Spark 4.2 or later"),
    ],
)
def test_a_query_says_why_its_state_keeps_its_partitions(
    facts: ev.QueryFacts, reason: str, words: str
) -> None:
    with world(queries=[facts]) as running:
        keeps = running.get(f"{API}/queries/{ID}").json["keepsPartitions"]
        assert keeps["reason"] == reason
        assert keeps["message"].startswith("Keep the checkpoint's 2 partitions: ")
        assert words in keeps["message"]


@pytest.mark.parametrize("change", [{"provider": "rocksdb"}, {"stateful": False}, {"trigger": "continuous"}])
def test_nothing_is_said_of_state_that_can_be_moved_or_is_nothing_of_ours(change: dict[str, Any]) -> None:
    with world(queries=[evolve(OLD_COUNTS, **change)]) as running:
        assert running.get(f"{API}/queries/{ID}").json["keepsPartitions"] is None


@pytest.mark.parametrize("id", [ID.replace("-", ""), ID.replace("-", "").upper()])
def test_the_dashes_of_an_id_may_be_left_out(api: World, id: str) -> None:
    assert api.get(f"{API}/queries/{id}").json["id"] == ID


def test_rescales_have_cause_reason_and_states(api: World) -> None:
    rescales = api.get(f"{API}/queries/{ID}/rescales").json["rescales"]
    first = rescales[-1]
    assert (first["number"], first["cause"], first["status"]) == (1, "initial_schedule", "completed")
    assert first["partitionsBefore"] is None
    assert first["partitionsAfter"] == 4
    assert [stay["state"] for stay in first["states"]][:1] == ["Created"]
    assert first["pausedMs"] == 0


def test_a_copy_of_the_state_is_shown_while_it_is_under_way_and_afterwards_what_it_took() -> None:
    query, rescales = f"{API}/queries/{ID}", f"{API}/queries/{ID}/rescales"
    with world({**ADAPTIVE, **AT_ONCE}, queries=[evolve(COUNTS, prepares_moves=True)]) as running:
        assert running.get(query).json["preparing"] is None
        assert running.prepares().partitions == 6
        shown = running.get(query).json
        assert (shown["state"], shown["partitions"], shown["target"]) == ("Executing", 4, None)
        assert shown["preparing"] == {"partitions": 6, "since": NOW}
        newest = running.get(rescales).json["rescales"][0]
        assert (newest["status"], newest["preparedMs"], newest["firstBatchMs"]) == ("in_progress", None, None)
        running.switches()
        shown = running.get(query).json
        assert (shown["partitions"], shown["preparing"], shown["rescales"]) == (6, None, 1)
        newest = running.get(rescales).json["rescales"][0]
        assert (newest["status"], newest["preparedMs"], newest["firstBatchMs"]) == ("completed", 4_000, 420)


def test_exceptions_are_shown_with_what_was_made_of_them(api: World) -> None:
    (shown,) = api.get(f"{API}/queries/enrich/exceptions").json["exceptions"]
    assert (shown["error"], shown["causes"], shown["offsets"]) == (
        "disk full",
        ["java.io.IOException"],
        "[7]",
    )
    assert shown["reason"] in {d["reason"] for d in api.get(f"{API}/decisions").json["decisions"]}
    assert api.get(f"{API}/queries/{ID}/exceptions").json == {"exceptions": []}


def test_decisions_are_listed_newest_first_and_can_be_chosen(api: World) -> None:
    decisions = api.get(f"{API}/decisions").json["decisions"]
    numbers = [d["number"] for d in decisions]
    assert numbers == sorted(numbers, reverse=True)
    assert len(numbers) > 3
    assert api.get(f"{API}/decisions?limit=1").json["decisions"] == decisions[:1]
    assert api.get(f"{API}/decisions?after={numbers[1]}").json["decisions"] == decisions[:1]
    about = api.get(f"{API}/decisions?query={ID}").json["decisions"]
    assert about == [d for d in decisions if d["query"] == ID]
    starts = api.get(f"{API}/decisions?kind=start").json["decisions"]
    assert {d["kind"] for d in starts} == {"start"}
    assert api.get(f"{API}/decisions/{numbers[0]}").json == decisions[0]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "limit=many", "limit=-1", "after=x", "after=" + "9" * 5000, "limit=٣"]
)
def test_a_parameter_that_is_no_number_is_refused(api: World, query: str) -> None:
    reply = api.get(f"{API}/decisions?{query}")
    assert reply.status == 400
    assert "allowed is a whole number from" in reply.errors


@pytest.mark.parametrize(
    "path",
    [
        "/queries/nobody",
        "/queries/" + "0" * 32,
        "/queries/nobody/resource-requirements",
        "/jobs/nobody/resource-requirements",
        "/queries/nobody/rescales",
        "/queries/nobody/exceptions",
        "/decisions/0",
        "/decisions/01",
        "/decisions/x",
        "/nothing",
        "/queries/a/b/c",
        "",
        "/../../environment",
        "/queries/\ud800",
        "/queries/" + "x" * 5000,
    ],
)
def test_what_is_not_there_is_not_found(api: World, path: str) -> None:
    reply = api.get(API + path)
    assert reply.status == 404
    assert len(reply.text) < 500


def test_a_slash_at_the_end_changes_nothing(api: World) -> None:
    assert api.get(f"{API}/queries/").json == api.get(f"{API}/queries").json


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "PATCH", "TRACE", "BREW"])
def test_other_methods_are_not_allowed_and_the_right_ones_are_named(api: World, method: str) -> None:
    reply = api.request(method, f"{API}/overview")
    assert reply.status == 405
    assert "GET" in reply.headers["allow"]


def test_head_and_options_are_what_http_says(api: World) -> None:
    assert api.request("HEAD", f"{API}/overview").status == 200
    options = api.request("OPTIONS", f"{API}/queries/{ID}/resource-requirements")
    assert (options.status, options.headers["allow"]) == (200, "DELETE, GET, PUT")


def test_a_policy_that_knows_nothing_yet_is_unavailable() -> None:
    with world(begun=False) as early:
        for path in ("/overview", "/queries", f"/queries/{ID}", "/decisions"):
            reply = early.get(API + path)
            assert reply.status == 503
            assert reply.headers["retry-after"] == "1"
        assert early.get(f"{API}/openapi.json").status == 200


def test_metrics_are_prometheus_text(api: World) -> None:
    reply = api.get("/elastic/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = reply.text.splitlines()
    assert "spark_elastic_slots 2" in lines
    assert "spark_elastic_executors 2" in lines
    assert "spark_elastic_policy_restarts_total 3" in lines
    assert f'spark_elastic_query_partitions{{query="{ID}",name="counts"}} 4' in lines
    assert f'spark_elastic_query_records_behind{{query="{ID}",name="counts"}} 4' in lines
    assert 'spark_elastic_rescales_total{cause="initial_schedule",status="completed"} 2' in lines
    count = next(line for line in lines if line.startswith("spark_elastic_decision_seconds_count"))
    assert f'spark_elastic_decision_seconds_bucket{{le="+Inf"}} {count.split()[1]}' in lines
    helped = {line.split()[2] for line in lines if line.startswith("# HELP")}
    typed = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert helped == typed


def test_a_name_cannot_break_the_metrics() -> None:
    odd = evolve(COUNTS, name='a"b\\c\nd\ud800')
    with world(queries=(odd,)) as running:
        text = running.get("/elastic/metrics").text
    assert 'name="a\\"b\\\\c\\nd?"' in text


def test_metrics_have_names_that_every_monitoring_system_takes() -> None:
    names = ("a.b c", "twice", "twice", None)
    queries = [evolve(STATELESS, query=f"id-{number}", name=name) for number, name in enumerate(names)]
    with world(queries=queries) as running:
        view = running.publisher.view
        assert view is not None
        found = flat(view)
    counts = {name.partition(".")[2] for name in found if name.startswith("query_partitions.")}
    assert counts == {"a_b_c", "id-1", "id-2", "id-3"}
    assert found["rescales_total.initial_schedule.completed"] == 4
    assert found["policy_restarts_total"] == 3
    assert found["decision_seconds_count"] > 0
    assert found["decision_seconds_sum"] > 0
