"""The OpenAPI description of the API; the tests check every answer against it.

The schemas are those by which the answers are written.
"""

from __future__ import annotations

from typing import Any, get_args

from spark_elastic.core.actions import DecisionKind, StateFormat
from spark_elastic.core.query.record import SAVEPOINTS_KEPT
from spark_elastic.http import flink_rescales, present
from spark_elastic.http.bounds_body import BOUNDS, JOB_BOUNDS, WANTED_BOUNDS
from spark_elastic.http.errors import ERRORS, LARGEST, LATEST
from spark_elastic.http.shapes import INT, TEXT, TIME, Schema, Shape, one_of
from spark_elastic.runtime.decided_stages import STAGES_KEPT
from spark_elastic.runtime.publisher import DECISIONS_KEPT
from spark_elastic.version import __version__

_SAVEPOINT_REQUEST = Shape[Any](
    {
        "type": "object",
        "properties": {
            "target": {
                "type": ["string", "null"],
                "minLength": 1,
                "maxLength": 4096,
                "pattern": r"\S",
                "description": "Folder under which it is written, below spark.elastic.savepointDir, which is "
                "the default, or below spark.elastic.savepoint.allowedPrefixes.",
            },
            "format": {
                "enum": [*get_args(StateFormat), None],
                "description": "Store and checkpoint format of its state, hdfs is that of plain Spark; null: "
                "as in the checkpoint.",
            },
            "stop": {"type": "boolean", "description": "Whether the query ends with it."},
        },
        "additionalProperties": False,
    },
    name="SavepointRequest",
)
_EMPTY = Shape[Any](
    {"type": "object", "description": "An object without members.", "maxProperties": 0}, name="Empty"
)
_DOCUMENT = Shape[Any]({"type": "object", "description": "The OpenAPI description."}, name="Document")

_SHAPES: tuple[Shape[Any], ...] = (
    present.OVERVIEW, present.QUERY, present.POLICY, present.BATCH,
    BOUNDS, JOB_BOUNDS, WANTED_BOUNDS,
    present.RESCALE, present.TIMELINE, present.APPLICATION_TIMELINE, present.QUERIES,
    present.STAGES, present.STAGE, present.SIZES, present.EXECUTIONS, present.EXECUTION,
    present.SAVEPOINT, _SAVEPOINT_REQUEST, present.EXCEPTION, present.DECISION, ERRORS, _EMPTY,
    present.RESCALES, present.SAVEPOINTS, present.EXCEPTIONS, present.DECISIONS, _DOCUMENT,
    flink_rescales.DETAILS, flink_rescales.OVERVIEW, flink_rescales.HISTORY, flink_rescales.SUMMARY,
)  # fmt: skip


_REFUSALS = {
    400: "The request is invalid; all errors are listed.",
    403: "Not allowed: read-only, no right to modify, a page of another origin, or a host name not the UI's.",
    404: "Not found.",
    408: "The body arrived too slowly.",
    409: "The mode or the state of the query does not allow it.",
    412: "If-Match names other bounds than those in force.",
    413: "The body has more than 64 KiB.",
    415: "The Content-Type is not application/json.",
    500: "It could not be journaled, so nothing was changed.",
    503: "The policy is busy, just starting, or gone: retry after the seconds in Retry-After.",
}
_SAVEPOINTS = (
    f"List the last {SAVEPOINTS_KEPT} savepoints of a query that were completed, the newest first; one that "
    "has been removed since stays in the list."
)
_JOB_RESCALES = {
    "overview": "Count the rescales of a query that are kept, and show the last of each outcome",
    "history": "List the rescales of a query, the newest first",
    "summary": "Count the rescales of a query, and say how long they took",
}
_CHANGE = (403, 404, 409, 500)
_WRITE = (*_CHANGE, 408, 413, 415)  # with a body


def _answer(description: str, shape: Shape[Any], headers: Schema | None = None) -> Schema:
    content = {"application/json": {"schema": shape.schema}}
    return {"description": description, "content": content, **({"headers": headers} if headers else {})}


def _operation(summary: str, shape: Shape[Any], *refusals: int, status: int = 200, **more: Any) -> Schema:
    headers = more.pop("headers", None)
    answers = {str(status): _answer("Done.", shape, headers)}
    for code in sorted({*refusals, 503}):
        retry = {"Retry-After": {"schema": INT.schema}} if code == 503 else None
        answers[str(code)] = _answer(_REFUSALS[code], ERRORS, retry)
    return {"summary": summary, "responses": answers, **more}


def _parameter(name: str, schema: Schema, description: str, place: str = "query") -> Schema:
    required = {"required": True} if place == "path" else {}
    return {"name": name, "in": place, "schema": schema, "description": description, **required}


def _body(shape: Shape[Any], *, required: bool) -> Schema:
    return {"required": required, "content": {"application/json": {"schema": shape.schema}}}


_WHOLE: Schema = {"type": "integer", "minimum": 0, "maximum": LARGEST}
_ID = _parameter("query", TEXT.schema, "The id of a streaming query; its dashes may be left out.", "path")
_NR = _parameter("number", {"type": "integer", "minimum": 1}, "The number of a decision.", "path")
_RESCALE = _parameter("rescale", TEXT.schema, "The id of a rescale, as the history has it.", "path")
_SEARCH = _parameter("search", TEXT.schema, "Only those with this in their name or id.")
_OFFSET = _parameter("offset", _WHOLE, "Skip this many of the first.")
_BEFORE = _parameter("before", _WHOLE, "Only those with a lower number.")
_AFTER = _parameter("after", _WHOLE, "Only those with a higher number.")
_SINCE = _parameter("after", {**TIME.schema, "minimum": 0, "maximum": LATEST}, "Only what happened later.")


def _limit(most: int) -> Schema:
    return _parameter("limit", {"type": "integer", "minimum": 1, "maximum": most}, "At most this many.")


_ETAG = {"ETag": {"schema": TEXT.schema, "description": "Changes with the bounds."}}
_IF_MATCH = _parameter("If-Match", TEXT.schema, "The ETag of the bounds to replace.", "header")


def _requirements(shown: Shape[Any]) -> Schema:
    """Describe the operations on a query's bounds; `shown` is what GET returns."""
    return {
        "parameters": [_ID],
        "get": _operation("Show the bounds in force.", shown, 404, headers=_ETAG),
        "put": _operation(
            "Set other bounds.",
            _EMPTY,
            *_WRITE,
            400,
            412,
            parameters=[_IF_MATCH],
            requestBody=_body(WANTED_BOUNDS, required=True),
        ),
        "delete": _operation(
            "Withdraw the bounds that were set: the configured ones apply.",
            _EMPTY,
            *_CHANGE,
            412,
            parameters=[_IF_MATCH],
        ),
    }


def _order(summary: str, body: Shape[Any]) -> Schema:
    """Describe a POST that orders something, and the equivalent PUT."""
    more: dict[str, Any] = {"status": 202, "requestBody": _body(body, required=False)}
    return {
        "post": _operation(f"{summary}.", _EMPTY, *_WRITE, 400, **more),
        "put": _operation(f"{summary}, through a proxy that passes no POST.", _EMPTY, *_WRITE, 400, **more),
    }


def document() -> Schema:
    """Return the description as a JSON-ready object."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "spark-elastic", "version": __version__, "license": {"name": "Apache-2.0"}},
        # Relative to this document, so that it works behind every proxy.
        "servers": [{"url": "."}],
        "paths": {
            "/overview": {"get": _operation("Show the application at a glance.", present.OVERVIEW)},
            "/timeline": {
                "get": _operation(
                    "Show the recent history of the application and of the queries that lag most, the newest "
                    "last.",
                    present.APPLICATION_TIMELINE,
                    400,
                    parameters=[_SINCE, _limit(LARGEST)],
                )
            },
            "/queries": {
                "get": _operation(
                    "List the queries, those that have ended last.",
                    present.QUERIES,
                    400,
                    parameters=[_SEARCH, _OFFSET, _limit(LARGEST)],
                )
            },
            "/queries/{query}": {"parameters": [_ID], "get": _operation("Show a query.", present.QUERY, 404)},
            "/queries/{query}/resource-requirements": _requirements(BOUNDS),
            "/jobs/{query}/resource-requirements": _requirements(JOB_BOUNDS),
            **{
                f"/jobs/{{query}}/rescales/{part}": {
                    "parameters": [_ID],
                    "get": _operation(f"{summary}, as Flink has it.", flink_rescales.PARTS[part], 404),
                }
                for part, summary in _JOB_RESCALES.items()
            },
            "/jobs/{query}/rescales/details/{rescale}": {
                "parameters": [_ID, _RESCALE],
                "get": _operation("Show a rescale, as Flink has it.", flink_rescales.DETAILS, 404),
            },
            "/queries/{query}/stop": {
                "parameters": [_ID],
                **_order("Stop a query for good", _EMPTY),
            },
            "/queries/{query}/savepoints": {
                "parameters": [_ID],
                "get": _operation(_SAVEPOINTS, present.SAVEPOINTS, 404),
                **_order("Take a savepoint of a query", _SAVEPOINT_REQUEST),
            },
            "/queries/{query}/rescales": {
                "parameters": [_ID],
                "get": _operation(
                    "List the rescales of a query, the newest first.",
                    present.RESCALES,
                    400,
                    404,
                    parameters=[_BEFORE, _limit(LARGEST)],
                ),
            },
            "/queries/{query}/timeline": {
                "parameters": [_ID],
                "get": _operation(
                    "Show the recent history of a query, the newest last.",
                    present.TIMELINE,
                    400,
                    404,
                    parameters=[_SINCE],
                ),
            },
            "/queries/{query}/exceptions": {
                "parameters": [_ID],
                "get": _operation("List the failures of a query, the newest first.", present.EXCEPTIONS, 404),
            },
            "/decisions": {
                "get": _operation(
                    "List the last decisions, the newest first.",
                    present.DECISIONS,
                    400,
                    parameters=[
                        _parameter("query", TEXT.schema, "Only those about the query with this id."),
                        _parameter("kind", one_of(DecisionKind).schema, "Only those of this kind."),
                        _AFTER,
                        _BEFORE,
                        _limit(DECISIONS_KEPT),
                    ],
                )
            },
            "/decisions/{number}": {
                "parameters": [_NR],
                "get": _operation("Show a decision with all that led to it.", present.DECISION, 404),
            },
            "/stages": {
                "get": _operation(
                    "List the last decisions about batch stages, the newest first.",
                    present.STAGES,
                    400,
                    parameters=[_BEFORE, _limit(STAGES_KEPT)],
                )
            },
            "/stages/{number}": {
                "parameters": [_NR],
                "get": _operation("Show a decision about a batch stage.", present.STAGE, 404),
            },
            "/executions": {
                "get": _operation(
                    "List the last decisions about batch stages by SQL execution, the newest first.",
                    present.EXECUTIONS,
                    400,
                    parameters=[
                        _parameter("execution", TEXT.schema, "Only the one with this id."),
                        _parameter(
                            "query",
                            TEXT.schema,
                            "Only those of the streaming query with this id; none: of no streaming query.",
                        ),
                        _BEFORE,
                        _limit(STAGES_KEPT),
                    ],
                )
            },
            "/openapi.json": {"get": _operation("Show this document.", _DOCUMENT)},
        },
        "components": {"schemas": {shape.name: shape.described for shape in _SHAPES}},
    }
