"""Tests of the answers that the event log stores at the end, up to its size limit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from spark_elastic.gateway.stages import Stages
from spark_elastic.http.app import make_application
from spark_elastic.http.resources import MOST_CHARACTERS
from spark_elastic.http.wsgi import HttpRequest, call
from tests.unit.core.builder import STATELESS
from tests.unit.http.contract import validator
from tests.unit.http.world import API, COUNTS, ID, World, world


@pytest.fixture(scope="module")
def api() -> Iterator[World]:
    with world(queries=(COUNTS, STATELESS)) as running:
        yield running


def archive(api: World, most: int = MOST_CHARACTERS) -> dict[str, Any]:
    request = HttpRequest(id="h1", method="GET", path="/elastic/archive", may_modify=False, left_ms=1_000)
    answer = call(make_application(api.publisher, api.requests, archived=most), request)
    assert answer.status == 200
    return {path: json.loads(text) for path, text in json.loads(answer.body)["answers"].items()}


def test_it_has_what_the_api_answers(api: World) -> None:
    answers = archive(api)
    of_query = [f"queries/{ID}{below}" for below in ("", "/rescales", "/exceptions", "/timeline")]
    for path in ("queries", "decisions", "stages", "executions", "timeline", *of_query):
        assert answers[path] == api.get(f"{API}/{path}").json, path
    assert answers["overview"] == {**api.get(f"{API}/overview").json, "mayWrite": False, "ended": True}
    validator("Overview").validate(answers["overview"])


def test_details_for_which_there_is_no_room_are_left_out(api: World) -> None:
    whole = archive(api)
    size = sum(len(json.dumps(answer, separators=(",", ":"))) for answer in whole.values())
    assert list(archive(api, most=size)) == list(whole)
    assert list(archive(api, most=size - 1)) == list(whole)[:-1]


def test_it_has_no_more_executions_than_decisions_about_them() -> None:
    with world() as running:
        stages = Stages(running.publisher)
        for execution in range(150):
            planned = {"id": "e", "bytes": 10}
            question = {"type": "InitialCount", "planned": 200, "exchanges": [planned]}
            questions = [{**question, "group": f"{execution}:{part}"} for part in "ab"]
            stages.answer({"id": "h1", "questions": questions})
        answers = archive(running)
        executions = answers["executions"]["executions"]
        assert [one["execution"] for one in executions] == [str(number) for number in range(149, 49, -1)]
        assert sum(len(one["stages"]) for one in executions) == len(answers["stages"]["stages"]) == 200
        # Newer micro-batches leave none of these out.
        for batch in range(150):
            written = {"id": "e", "bytes": [10, 10]}
            question = {"type": "Ranges", "group": f"{1_000 + batch}@q:a", "exchanges": [written]}
            stages.answer({"id": "h1", "questions": [question]})
        assert archive(running)["executions"]["executions"] == executions
