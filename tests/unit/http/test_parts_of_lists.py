"""Tests of requests by a page that shows much: parts of lists, series, and whether it may show buttons."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from attrs import evolve

from spark_elastic.core import events as ev
from spark_elastic.gateway.stages import Stages
from tests.unit.core.builder import STATELESS
from tests.unit.http.world import API, COUNTS, ID, NOW, REQUIREMENTS, World, body, world

SPREAD = evolve(STATELESS, query="spread-id", name="Spread")


@pytest.fixture(scope="module")
def api() -> Iterator[World]:
    with world(queries=(COUNTS, SPREAD, evolve(STATELESS, name=None))) as running:
        for lower in (1, 2, 1, 2):
            assert running.put(REQUIREMENTS, body(lower, 3)).status == 200
        for batch in (1, 2):
            running.send(
                ev.QueryProgress, query=ID, run="r1", batch=batch, started=NOW + batch, duration_ms=300,
                input_rows_per_second=80.5, partitions=4,
            )  # fmt: skip
        running.send(ev.ExecutorRemoved, executor="2", reason="killed")
        running.send(ev.QueryTerminated, query=ID, run="r1")
        yield running


def names(api: World, parameters: str) -> tuple[list[str | None], int]:
    found = api.get(f"{API}/queries?{parameters}").json
    return [query["name"] for query in found["queries"]], found["total"]


def test_queries_come_in_parts_those_that_have_ended_last(api: World) -> None:
    assert names(api, "") == (["Spread", None, "counts"], 3)
    assert names(api, "limit=2") == (["Spread", None], 3)
    assert names(api, "limit=2&offset=2") == (["counts"], 3)
    assert names(api, "offset=7") == ([], 3)


def test_queries_are_found_by_a_part_of_name_or_id(api: World) -> None:
    assert names(api, "search=sPRe") == (["Spread"], 1)
    assert names(api, f"search={ID[:6]}") == (["counts"], 1)
    assert names(api, "search=nothing") == ([], 0)


def test_rescales_come_in_parts(api: World) -> None:
    every = api.get(f"{API}/queries/{ID}/rescales").json["rescales"]
    assert len(every) >= 3
    assert api.get(f"{API}/queries/{ID}/rescales?limit=2").json["rescales"] == every[:2]
    older = api.get(f"{API}/queries/{ID}/rescales?limit=1&before={every[0]['number']}").json["rescales"]
    assert older == every[1:2]


def test_older_decisions_can_be_asked_for(api: World) -> None:
    every = api.get(f"{API}/decisions").json["decisions"]
    older = api.get(f"{API}/decisions?limit=3&before={every[1]['number']}").json["decisions"]
    assert older == every[2:5]


def test_the_timeline_has_batches_slots_and_lost_executors(api: World) -> None:
    shown = api.get(f"{API}/queries/{ID}/timeline").json
    assert [batch["at"] - NOW for batch in shown["batches"]] == [1, 2]
    assert shown["batches"][0] == {
        "at": NOW + 1, "durationMs": 300, "partitions": 4, "inputRowsPerSecond": 80.5, "lagMs": 0
    }  # fmt: skip
    assert [change["slots"] for change in shown["slots"]] == [4, 2]
    assert shown["lost"] == [{"at": NOW, "executor": "2", "reason": "killed", "released": False}]
    later = api.get(f"{API}/queries/{ID}/timeline?after={NOW + 1}").json
    assert [len(later[series]) for series in ("batches", "slots", "lost")] == [1, 0, 0]
    assert api.get(f"{API}/queries/nobody/timeline").status == 404


def test_the_timeline_of_the_application_has_what_there_is_and_live_queries(api: World) -> None:
    shown = api.get(f"{API}/timeline").json
    there = [(change["slots"], change["executors"]) for change in shown["slots"]]
    assert there[0] == (4, 2)
    assert there[-1] == (2, 1)
    # The queries have no bounds.
    assert shown["slots"][-1]["wanted"] is None
    assert [one["executor"] for one in shown["lost"]] == ["2"]
    assert {query["name"] for query in shown["queries"]} == {"Spread", None}
    later = api.get(f"{API}/timeline?after={NOW + 1}").json
    assert (later["slots"], later["lost"]) == ([], [])


def test_the_queries_that_lag_most_come_first_and_are_no_more_than_requested() -> None:
    with world(queries=(COUNTS, SPREAD, evolve(STATELESS, name=None))) as running:
        for query, rows in ((ID, 1), ("spread-id", 100)):
            for batch in (1, 2):
                running.send(
                    ev.QueryProgress, query=query, run="r1", batch=batch, started=NOW + batch * 1_000,
                    duration_ms=300, input_rows=rows, input_rows_per_second=10.0, partitions=4,
                    records_behind=rows,
                )  # fmt: skip
        shown = running.get(f"{API}/timeline?limit=2").json["queries"]
        assert [query["id"] for query in shown] == ["spread-id", ID]
        assert [batch["lagMs"] for batch in shown[0]["batches"]] == [10_300, 11_300]
        assert shown[0]["batches"][0]["durationMs"] == 300
        (newest,) = running.get(f"{API}/timeline?limit=1&after={NOW + 1_300}").json["queries"]
        assert [batch["at"] - NOW for batch in newest["batches"]] == [2_000]


@pytest.mark.parametrize(
    "path",
    ["timeline?limit=0", "timeline?after=x", "executions?limit=1001", "queries?limit=0",
     "queries?offset=-1", f"queries/{ID}/rescales?before=x", "stages?limit=1001",
     f"queries/{ID}/timeline?after=99999999999999999"],
)  # fmt: skip
def test_a_part_that_makes_no_sense_is_refused(api: World, path: str) -> None:
    assert api.get(f"{API}/{path}").status == 400


def test_it_is_said_who_may_write(api: World) -> None:
    assert api.get(f"{API}/overview").json["mayWrite"] is True
    assert api.get(f"{API}/overview", may_modify=False).json["mayWrite"] is False
    with world({"spark.elastic.rest.readOnly": "true"}) as running:
        assert running.get(f"{API}/overview").json["mayWrite"] is False


def test_decisions_about_stages_have_numbers_and_sizes_of_tasks(api: World) -> None:
    stages = Stages(api.publisher)
    for number in range(3):
        exchange = {"id": f"e{number}", "bytes": [10, 20, 30]}
        stages.answer(
            {"id": "h1", "questions": [{"type": "Ranges", "group": f"g{number}", "exchanges": [exchange]}]}
        )
    every = api.get(f"{API}/stages").json["stages"]
    assert [stage["group"] for stage in every] == ["g2", "g1", "g0"]
    assert every[0]["sizes"]["total"] == 60
    assert every[0]["sizes"]["of"] == "tasks"
    middle = every[1]["number"]
    assert api.get(f"{API}/stages?limit=1&before={every[0]['number']}").json["stages"] == every[1:2]
    assert api.get(f"{API}/stages/{middle}").json == every[1]
    assert api.get(f"{API}/stages/9999").status == 404


def test_decisions_about_stages_are_listed_by_execution(api: World) -> None:
    stages = Stages(api.publisher)
    for group in ("21:a", "22:a", "21:b"):
        planned = {"id": group, "bytes": 10}
        question = {"type": "InitialCount", "group": group, "planned": 200, "exchanges": [planned]}
        stages.answer({"id": "h1", "questions": [question]})
    newest, older = api.get(f"{API}/executions?limit=2").json["executions"]
    assert [newest["execution"], older["execution"]] == ["21", "22"]
    assert [stage["group"] for stage in newest["stages"]] == ["21:b", "21:a"]
    assert newest["stages"][0]["exchanges"] == [{"id": "21:b", "bytes": 10}]
    assert newest["number"] == newest["stages"][0]["number"]
    assert api.get(f"{API}/executions?execution=22").json["executions"] == [older]
    assert api.get(f"{API}/executions?execution=23").json["executions"] == []
    before = api.get(f"{API}/executions?limit=1&before={newest['number']}").json["executions"]
    assert before == [older]


def test_micro_batches_are_listed_by_query(api: World) -> None:
    stages = Stages(api.publisher)
    for owner in ("31", "32@q1", "33@q2", "34@q1"):
        written = {"id": f"{owner}:a", "bytes": [10, 10]}
        question = {"type": "Ranges", "group": f"{owner}:a", "exchanges": [written]}
        stages.answer({"id": "h1", "questions": [question]})

    def listed(query: str) -> list[tuple[str, str | None]]:
        found = api.get(f"{API}/executions?query={query}").json["executions"]
        assert all(stage["query"] == one["query"] for one in found for stage in one["stages"])
        return [(one["execution"], one["query"]) for one in found]

    assert listed("q1") == [("34", "q1"), ("32", "q1")]
    assert listed("none")[0] == ("31", None)
    assert {query for _, query in listed("none")} == {None}
    newest = api.get(f"{API}/executions?query=q1&limit=1").json["executions"][0]["number"]
    (older,) = api.get(f"{API}/executions?query=q1&before={newest}").json["executions"]
    assert older["execution"] == "32"
