"""Tests of the API's own description: valid, complete, and true whatever a client sends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import schemathesis
from falcon.inspect import inspect_app
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import load_all_checks
from schemathesis.specs.openapi.checks import positive_data_acceptance

from spark_elastic.core import events as ev
from spark_elastic.http.openapi import document
from spark_elastic.http.wsgi import HttpRequest, call
from tests.unit.http.world import API, COUNTS, ID, World, world

pytestmark = pytest.mark.long

load_all_checks()
HEADERS = ("Content-Type", "If-Match", "Origin", "Sec-Fetch-Site", "Host", "Forwarded", "X-Forwarded-Host")
MOST_BYTES = 64 * 1024


@pytest.fixture(scope="module")
def api() -> Iterator[World]:
    with world() as running:
        yield running


DESCRIBED = schemathesis.openapi.from_dict(document())
# The other operations accept any text, so no client can send anything invalid to them.
CHOOSY = ("PUT", "POST", "GET /decisions")
OPERATIONS: list[Any] = [found.ok() for found in DESCRIBED.get_all_operations()]  # type: ignore[union-attr]


def servlet(api: World) -> Callable[..., Iterable[bytes]]:
    """Return a WSGI application that stands between client and policy process, like the shim's servlet."""

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        named = {name: "HTTP_" + name.upper().replace("-", "_") for name in HEADERS}
        named["Content-Type"] = "CONTENT_TYPE"
        content = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        assert len(content) <= MOST_BYTES
        request = HttpRequest(
            id="h1",
            method=environ["REQUEST_METHOD"],
            path=environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace"),
            query=environ.get("QUERY_STRING", ""),
            headers={name: environ[key] for name, key in named.items() if key in environ},
            body=content,
            may_modify=True,
            left_ms=10_000,
        )
        answer = call(api.application, request)
        start_response(f"{answer.status} Said", list(answer.headers.items()))
        return [answer.body.encode()]

    return serve


@pytest.mark.parametrize(
    ("operation", "mode"),
    [(operation, GenerationMode.POSITIVE) for operation in OPERATIONS]
    + [
        (operation, GenerationMode.NEGATIVE) for operation in OPERATIONS if operation.label.startswith(CHOOSY)
    ],
    ids=lambda value: getattr(value, "label", value),
)
def test_whatever_a_client_sends_the_answer_is_as_described(
    api: World, operation: Any, mode: GenerationMode
) -> None:
    app = servlet(api)
    statuses: set[int] = set()

    @settings(
        max_examples=15,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case: Any) -> None:
        if "query" in case.path_parameters and len(str(case.path_parameters["query"])) % 2:
            case.path_parameters["query"] = ID
            if "rescale" in case.path_parameters:
                known = api.get(f"{API}/jobs/{ID}/rescales/history").json
                case.path_parameters["rescale"] = known[0]["rescaleUuid"]
        # A body that matches the schema may still be wrong, such as a lower bound above the upper one.
        checks = [positive_data_acceptance]
        statuses.add(case.call_and_validate(base_url=API, app=app, excluded_checks=checks).status_code)
        if api.publisher.view is not None and api.publisher.view.queries[ID].state == "Finished":
            api.send(ev.QuerySubmitted, facts=COUNTS, run="r1")

    send()
    if mode is GenerationMode.NEGATIVE:
        assert max(statuses) >= 400
    elif operation.method == "get" and "{number}" not in operation.path:
        assert min(statuses) < 300


def test_the_description_has_every_path_and_method_and_no_others(api: World) -> None:
    offered = {
        (route.path.removeprefix("/api/v1"), method.method.lower())
        for route in inspect_app(api.application).routes
        for method in route.methods
        if not method.internal
    }
    described = {
        (path, method)
        for path, item in document()["paths"].items()
        for method in item
        if method != "parameters"
    }
    # The first is Prometheus text, the second is only for the shim.
    assert described == offered - {("/metrics", "get"), ("/archive", "get")}
