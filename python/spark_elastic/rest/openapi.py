"""The description of the API in OpenAPI's terms, as data; the tests hold every answer against it."""

from __future__ import annotations

from typing import Any

from spark_elastic import __version__
from spark_elastic.core.actions import DecisionKind
from spark_elastic.core.query.record import SAVEPOINTS_KEPT
from spark_elastic.rest.flink_schemas import FLINK_SCHEMAS
from spark_elastic.rest.parameters import LARGEST, LATEST
from spark_elastic.rest.schema import INT, TEXT, TIME, WHOLE, Schema, one_of, ref
from spark_elastic.rest.schemas import SCHEMAS
from spark_elastic.runtime.decided_stages import STAGES_KEPT
from spark_elastic.runtime.view import DECISIONS_KEPT

_REFUSALS = {
    400: "The request is invalid; all errors are listed.",
    403: "Not allowed: read-only, no right to modify, a page of another origin, or a host name not the UI's.",
    404: "Not found.",
    408: "The body arrived too slowly.",
    409: "The mode or the state of the query does not allow it.",
    412: "If-Match names other bounds than those in force.",
    413: "The body has more than 64 KiB.",
    415: "The Content-Type is not application/json.",
    500: "It cannot be journaled, so it was not done.",
    503: "The policy is busy, just starting, or gone: retry after the seconds in Retry-After.",
}
_SAVEPOINTS = (
    f"List the last {SAVEPOINTS_KEPT} savepoints of a query that were completed, the newest first; one that "
    "has been removed since stays in the list."
)
_JOB_RESCALES = (
    ("overview", "Count the rescales of a query that are kept, and show the last of each outcome",
     "JobRescalesOverview"),
    ("history", "List the rescales of a query, the newest first", "JobRescalesHistory"),
    ("summary", "Count the rescales of a query, and say how long they took", "JobRescalesSummary"),
)  # fmt: skip
_CHANGE = (403, 404, 409, 500)
_WRITE = (*_CHANGE, 408, 413, 415)  # with a body


def _answer(description: str, schema: str, headers: Schema | None = None) -> Schema:
    content = {"application/json": {"schema": ref(schema)}}
    return {"description": description, "content": content, **({"headers": headers} if headers else {})}


def _operation(summary: str, schema: str, *refusals: int, status: int = 200, **more: Any) -> Schema:
    headers = more.pop("headers", None)
    answers = {str(status): _answer("Done.", schema, headers)}
    for code in sorted({*refusals, 503}):
        retry = {"Retry-After": {"schema": INT}} if code == 503 else None
        answers[str(code)] = _answer(_REFUSALS[code], "Errors", retry)
    return {"summary": summary, "responses": answers, **more}


def _parameter(name: str, schema: Schema, description: str, place: str = "query") -> Schema:
    required = {"required": True} if place == "path" else {}
    return {"name": name, "in": place, "schema": schema, "description": description, **required}


def _body(schema: Schema, *, required: bool) -> Schema:
    return {"required": required, "content": {"application/json": {"schema": schema}}}


_ID = _parameter("query", TEXT, "The id of a streaming query; its dashes may be left out.", "path")
_NR = _parameter("number", {"type": "integer", "minimum": 1}, "The number of a decision.", "path")
_RESCALE = _parameter("rescale", TEXT, "The id of a rescale, as the history has it.", "path")
_SEARCH = _parameter("search", TEXT, "Only those whose name or id contains this.")
_OFFSET = _parameter("offset", WHOLE, "Skip this many of the first.")
_BEFORE = _parameter("before", WHOLE, "Only those with a lower number.")
_AFTER = _parameter("after", WHOLE, "Only those with a higher number.")
_SINCE = _parameter("after", {**TIME, "minimum": 0, "maximum": LATEST}, "Only what happened later.")


def _limit(most: int) -> Schema:
    return _parameter("limit", {"type": "integer", "minimum": 1, "maximum": most}, "At most this many.")


_ETAG = {"ETag": {"schema": TEXT, "description": "Changes with the bounds."}}
_IF_MATCH = _parameter("If-Match", TEXT, "The ETag of the bounds that are to be replaced.", "header")


def _requirements(shown: str) -> Schema:
    """Describe the bounds of a query, shown in the form of this schema."""
    return {
        "parameters": [_ID],
        "get": _operation("Show the bounds in force.", shown, 404, headers=_ETAG),
        "put": _operation(
            "Set other bounds.",
            "Empty",
            *_WRITE,
            400,
            412,
            parameters=[_IF_MATCH],
            requestBody=_body(ref("WantedRequirements"), required=True),
        ),
        "delete": _operation(
            "Take back the bounds that were set: the configured ones apply.",
            "Empty",
            *_CHANGE,
            412,
            parameters=[_IF_MATCH],
        ),
    }


def _order(summary: str, body: str) -> Schema:
    """Describe a POST that orders something, and the PUT that does the same."""
    more: dict[str, Any] = {"status": 202, "requestBody": _body(ref(body), required=False)}
    return {
        "post": _operation(f"{summary}.", "Empty", *_WRITE, 400, **more),
        "put": _operation(f"{summary}, through a proxy that passes no POST.", "Empty", *_WRITE, 400, **more),
    }


def document() -> Schema:
    """Return the description as a JSON-ready object."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "spark-elastic", "version": __version__, "license": {"name": "Apache-2.0"}},
        # Relative to this document, so that it holds behind every proxy.
        "servers": [{"url": "."}],
        "paths": {
            "/overview": {"get": _operation("Show the application at a glance.", "Overview")},
            "/queries": {
                "get": _operation(
                    "List the queries, those that have ended last.",
                    "Queries",
                    400,
                    parameters=[_SEARCH, _OFFSET, _limit(LARGEST)],
                )
            },
            "/queries/{query}": {"parameters": [_ID], "get": _operation("Show a query.", "Query", 404)},
            "/queries/{query}/resource-requirements": _requirements("ResourceRequirements"),
            "/jobs/{query}/resource-requirements": _requirements("JobResourceRequirements"),
            **{
                f"/jobs/{{query}}/rescales/{part}": {
                    "parameters": [_ID],
                    "get": _operation(f"{summary}, as Flink has it.", schema, 404),
                }
                for part, summary, schema in _JOB_RESCALES
            },
            "/jobs/{query}/rescales/details/{rescale}": {
                "parameters": [_ID, _RESCALE],
                "get": _operation("Show a rescale, as Flink has it.", "JobRescaleDetails", 404),
            },
            "/queries/{query}/stop": {
                "parameters": [_ID],
                **_order("Stop a query for good", "Empty"),
            },
            "/queries/{query}/savepoints": {
                "parameters": [_ID],
                "get": _operation(_SAVEPOINTS, "Savepoints", 404),
                **_order("Take a savepoint of a query", "SavepointRequest"),
            },
            "/queries/{query}/rescales": {
                "parameters": [_ID],
                "get": _operation(
                    "List the rescales of a query, the newest first.",
                    "Rescales",
                    400,
                    404,
                    parameters=[_BEFORE, _limit(LARGEST)],
                ),
            },
            "/queries/{query}/timeline": {
                "parameters": [_ID],
                "get": _operation(
                    "Show what has happened to a query lately, the newest last.",
                    "Timeline",
                    400,
                    404,
                    parameters=[_SINCE],
                ),
            },
            "/queries/{query}/exceptions": {
                "parameters": [_ID],
                "get": _operation("List the failures of a query, the newest first.", "Exceptions", 404),
            },
            "/decisions": {
                "get": _operation(
                    "List the last decisions, the newest first.",
                    "Decisions",
                    400,
                    parameters=[
                        _parameter("query", TEXT, "Only those about the query with this id."),
                        _parameter("kind", one_of(DecisionKind), "Only those of this kind."),
                        _AFTER,
                        _BEFORE,
                        _limit(DECISIONS_KEPT),
                    ],
                )
            },
            "/decisions/{number}": {
                "parameters": [_NR],
                "get": _operation("Show a decision with all that led to it.", "Decision", 404),
            },
            "/stages": {
                "get": _operation(
                    "List the last decisions about batch stages, the newest first.",
                    "Stages",
                    400,
                    parameters=[_BEFORE, _limit(STAGES_KEPT)],
                )
            },
            "/stages/{number}": {
                "parameters": [_NR],
                "get": _operation("Show a decision about a batch stage.", "Stage", 404),
            },
            "/openapi.json": {"get": _operation("Show this document.", "Document")},
        },
        "components": {"schemas": {**SCHEMAS, **FLINK_SCHEMAS}},
    }
