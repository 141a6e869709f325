"""The WSGI application: the resource of each path, and the rules for all of them."""

from __future__ import annotations

from typing import Any

import falcon

from spark_elastic.http.errors import Refusal, serialize, unexpected
from spark_elastic.http.flink_rescales import PARTS, JobRescales, RescaleDetails
from spark_elastic.http.requirements import ResourceRequirements
from spark_elastic.http.resources import (
    MOST_CHARACTERS,
    ApplicationTimeline,
    Archive,
    Decision,
    Decisions,
    Document,
    Exceptions,
    Executions,
    Metrics,
    Overview,
    Queries,
    Query,
    Rescales,
    Savepoints,
    Stage,
    Stages,
    Stop,
    Timeline,
)
from spark_elastic.runtime.publisher import Publisher
from spark_elastic.runtime.request_queue import RequestQueue

API = "/api/v1"


class _Methods:
    """Treats HEAD as GET, since the servlet container omits the body, and refuses unknown methods."""

    def process_request(self, request: falcon.Request, _: falcon.Response) -> None:
        if request.method == "HEAD":
            request.method = "GET"

    def process_resource(
        self, request: falcon.Request, _: falcon.Response, resource: Any, __: dict[str, Any]
    ) -> None:
        if request.method not in falcon.HTTP_METHODS:
            allowed = [m for m in falcon.HTTP_METHODS if hasattr(resource, f"on_{m.lower()}")]
            raise falcon.HTTPMethodNotAllowed(allowed)


def make_application(
    publisher: Publisher, requests: RequestQueue, archived: int = MOST_CHARACTERS
) -> falcon.App[falcon.Request, falcon.Response]:
    """Build the application, which reads from `publisher` and hands its writes to `requests`.

    The archive for an event log has at most `archived` characters.
    """
    app = falcon.App(middleware=[_Methods()])
    app.req_options.strip_url_path_trailing_slash = True
    app.set_error_serializer(serialize)
    app.add_error_handler(Exception, unexpected)
    for path, resource in (
        ("/overview", Overview(publisher)),
        ("/timeline", ApplicationTimeline(publisher)),
        ("/queries", Queries(publisher)),
        ("/queries/{query}", Query(publisher)),
        ("/queries/{query}/resource-requirements", ResourceRequirements(publisher, requests)),
        ("/queries/{query}/savepoints", Savepoints(publisher, requests)),
        ("/queries/{query}/stop", Stop(publisher, requests)),
        ("/queries/{query}/rescales", Rescales(publisher)),
        ("/queries/{query}/exceptions", Exceptions(publisher)),
        ("/queries/{query}/timeline", Timeline(publisher)),
        ("/jobs/{query}/resource-requirements", ResourceRequirements(publisher, requests, for_flink=True)),
        ("/jobs/{query}/rescales/details/{rescale}", RescaleDetails(publisher)),
        ("/decisions", Decisions(publisher)),
        ("/decisions/{number}", Decision(publisher)),
        ("/stages", Stages(publisher)),
        ("/stages/{number}", Stage(publisher)),
        ("/executions", Executions(publisher)),
        ("/openapi.json", Document()),
    ):
        app.add_route(API + path, resource)
    for part in PARTS:
        app.add_route(f"{API}/jobs/{{query}}/rescales/{part}", JobRescales(publisher, part))
    app.add_route("/metrics", Metrics(publisher))
    app.add_route("/archive", Archive(publisher, archived))
    app.add_sink(_nothing_here)
    return app


def _nothing_here(req: falcon.Request, resp: falcon.Response, **_: str) -> None:
    raise Refusal(404, "no such path: GET …/elastic/api/v1/openapi.json says what there is")
