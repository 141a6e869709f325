"""Tests of the answers that the event log stores at the end, up to its size limit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

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
    for path in ("queries", "decisions", "stages", f"queries/{ID}", f"queries/{ID}/rescales",
                 f"queries/{ID}/exceptions", f"queries/{ID}/timeline"):  # fmt: skip
        assert answers[path] == api.get(f"{API}/{path}").json, path
    assert answers["overview"] == {**api.get(f"{API}/overview").json, "mayWrite": False, "ended": True}
    validator("Overview").validate(answers["overview"])


def test_details_for_which_there_is_no_room_are_left_out(api: World) -> None:
    whole = archive(api)
    size = sum(len(json.dumps(answer, separators=(",", ":"))) for answer in whole.values())
    assert list(archive(api, most=size)) == list(whole)
    assert list(archive(api, most=size - 1)) == list(whole)[:-1]
