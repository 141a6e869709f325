"""The description of the API in OpenAPI's terms, as data; the tests hold every answer against it."""

from __future__ import annotations

from typing import Any, get_args

from spark_elastic import __version__
from spark_elastic.core.actions import DecisionKind
from spark_elastic.core.batch.questions import QUESTION_TYPES
from spark_elastic.core.events import Trigger
from spark_elastic.core.history import Cause, Status, TerminatedReason
from spark_elastic.core.query.transitions import TRANSITIONS
from spark_elastic.rest.parameters import LARGEST, LATEST
from spark_elastic.runtime.decided_stages import STAGES_KEPT
from spark_elastic.runtime.view import DECISIONS_KEPT

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_INT: Schema = {"type": "integer"}
_NUMBER: Schema = {"type": "number"}
_BOOL: Schema = {"type": "boolean"}
_TIME: Schema = {"type": "integer", "description": "Epoch ms."}
_MS: Schema = {"type": "integer", "description": "Milliseconds."}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_WHOLE: Schema = {"type": "integer", "minimum": 0, "maximum": LARGEST}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _one_of(literal: Any) -> Schema:
    return {"type": "string", "enum": list(get_args(literal))}


def _list(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def _object(**members: Schema) -> Schema:
    """Describe an object that always has these members and no others."""
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


_STATE: Schema = {"type": "string", "enum": list(TRANSITIONS)}
_BOUND: Schema = {
    "type": "integer",
    "minimum": -1,
    "maximum": 2**31 - 1,
    "description": "A whole number from 1 up, or -1 for no bound.",
}

_VERTEX = _object(parallelism=_object(lowerBound=_BOUND, upperBound=_BOUND))

_SCHEMAS: dict[str, Schema] = {
    "Overview": _object(
        application=_object(id=_TEXT, name=_TEXT),
        version=_TEXT,
        sparkVersion=_TEXT,
        at=_TIME,
        mode={"type": "string", "enum": ["reactive", "adaptive"]},
        adviseOnly=_BOOL,
        readOnly=_BOOL,
        ended={"type": "boolean", "description": "Whether this is what the event log has of its end."},
        mayWrite={"type": "boolean", "description": "Whether who asks may change something."},
        maxParallelism={"type": "integer", "description": "What an upper bound of -1 stands for."},
        policyRestarts=_COUNT,
        slots=_object(now=_COUNT, desired=_or_null(_COUNT)),
        executors=_list(
            _object(id=_TEXT, host=_TEXT, cores=_COUNT, slots=_COUNT, excluded=_BOOL, decommissioning=_BOOL)
        ),
        queries={"type": "object", "propertyNames": _STATE, "additionalProperties": _COUNT},
    ),
    "Query": _object(
        id=_TEXT,
        name=_or_null(_TEXT),
        run=_TEXT,
        state=_STATE,
        stateful=_BOOL,
        trigger=_one_of(Trigger),
        triggerMs=_MS,
        partitions=_or_null(_COUNT),
        target=_or_null(_COUNT),
        requirements=_ref("ResourceRequirements"),
        boundBy={"type": "string", "description": "Where the upper bound comes from."},
        restarts=_COUNT,
        rescales=_COUNT,
        sources={**_list(_TEXT), "description": "What is read, in the order of the vertices source-0, …"},
        lastBatch=_or_null(_ref("Batch")),
        lastDecision=_or_null(_ref("Decision")),
    ),
    "Batch": _object(
        batch=_INT,
        started=_TIME,
        durationMs=_MS,
        partitions=_INT,
        inputRows=_INT,
        inputRowsPerSecond=_NUMBER,
        processedRowsPerSecond=_NUMBER,
        stateRows=_INT,
        stateBytes=_INT,
        offsetsBehind=_or_null(
            {
                **_object(avg=_NUMBER, max=_INT, min=_INT),
                "description": "Records not read by the partitions of the source that is furthest behind.",
            }
        ),
        sources=_list(_object(vertex=_TEXT, inputRows=_INT, tasks=_or_null(_COUNT))),
    ),
    "ResourceRequirements": {
        "type": "object",
        "description": "Bounds by vertex, in Flink's form: the query's shuffle, and in adaptive mode its "
        "sources, source-0 and so on. A source that is left out keeps its bounds.",
        "properties": {"shuffle": _VERTEX},
        "patternProperties": {"^source-[0-9]+$": _VERTEX},
        "required": ["shuffle"],
        "additionalProperties": False,
    },
    "Rescale": _object(
        number=_INT,
        requirements={"type": "integer", "description": "Counts the bounds that the query has had."},
        attempt={"type": "integer", "description": "Counts the rescales with these bounds."},
        cause=_one_of(Cause),
        status=_one_of(Status),
        reason=_or_null(_one_of(TerminatedReason)),
        started=_TIME,
        ended=_or_null(_TIME),
        slotsBefore=_or_null(_COUNT),
        slotsAfter=_or_null(_COUNT),
        partitionsBefore=_or_null(_COUNT),
        partitionsAfter=_or_null(_COUNT),
        pausedMs=_MS,
        states=_list(_object(state=_STATE, entered=_TIME, left=_or_null(_TIME))),
    ),
    "Timeline": _object(
        batches=_list(_object(at=_TIME, durationMs=_MS, partitions=_INT, inputRowsPerSecond=_NUMBER)),
        slots=_list(_object(at=_TIME, slots=_COUNT)),
        lost=_list(_object(at=_TIME, executor=_TEXT, reason=_TEXT)),
    ),
    "Queries": _object(queries=_list(_ref("Query")), total=_COUNT),
    "Stages": _object(stages=_list(_ref("Stage")), unanswered=_COUNT),
    "Stage": _object(
        number=_INT,
        at=_TIME,
        group=_TEXT,
        question={"type": "string", "enum": [question.__name__ for question in QUESTION_TYPES]},
        tookUs=_COUNT,
        kind=_one_of(DecisionKind),
        reason=_TEXT,
        message=_TEXT,
        before=_or_null(_COUNT),
        after=_or_null(_COUNT),
        numbers={"type": "object"},
        sizes=_or_null(_ref("Sizes")),
    ),
    "Sizes": {
        **_object(
            of={"type": "string", "enum": ["tasks", "partitions"]},
            count=_COUNT,
            total=_COUNT,
            smallest=_COUNT,
            median=_COUNT,
            largest=_COUNT,
            buckets=_list(_COUNT),
        ),
        "description": "Bytes, and how many have so many, in equal steps from 0 up; of partitions "
        "where Spark makes its own tasks of them.",
    },
    "Savepoint": _object(at=_TIME, path=_TEXT, batch=_COUNT, bytes=_COUNT),
    "SavepointRequest": {
        "type": "object",
        "properties": {
            "target": {
                "type": ["string", "null"],
                "minLength": 1,
                "maxLength": 4096,
                "pattern": r"\S",
                "description": "Folder under which it is to stand; without it spark.elastic.savepointDir.",
            },
            "stop": {"type": "boolean", "description": "Whether the query is to end with it."},
        },
        "additionalProperties": False,
    },
    "Exception": _object(
        at=_TIME,
        error=_TEXT,
        errorClass=_or_null(_TEXT),
        causes=_list(_TEXT),
        offsets=_TEXT,
        reason={"type": "string", "description": "What was made of it: the code of the decision."},
    ),
    "Decision": _object(
        number=_INT,
        query=_or_null(_TEXT),
        at=_TIME,
        kind=_one_of(DecisionKind),
        reason=_TEXT,
        message=_TEXT,
        cause={"type": "string", "description": "The id of the event."},
        before=_or_null(_INT),
        after=_or_null(_INT),
        numbers={
            "type": "object",
            "description": "What was compared.",
            "additionalProperties": {"anyOf": [_NUMBER, _TEXT]},
        },
        alternatives=_list(_TEXT),
        until=_or_null(_TIME),
    ),
    "Errors": {
        "type": "object",
        "description": "Why a request was refused: a sentence for each error, all of them at once.",
        "properties": {
            "errors": {**_list(_TEXT), "minItems": 1},
            "problems": _list(_object(code=_TEXT, where=_TEXT, message=_TEXT)),
        },
        "required": ["errors"],
        "additionalProperties": False,
    },
    "Empty": {"type": "object", "maxProperties": 0},
}

_REFUSALS = {
    400: "What was sent makes no sense; all errors are listed.",
    403: "Not allowed: read-only, no right to modify, or a page of another origin.",
    404: "There is no such thing.",
    408: "The body came too slowly.",
    409: "The mode or the state of the query does not allow it.",
    412: "If-Match names other bounds than those in force.",
    413: "The body has more than 64 KiB.",
    415: "The Content-Type is not application/json.",
    500: "It cannot be journaled, so it was not done.",
    503: "The policy is busy, just starting, or gone: try again after the seconds in Retry-After.",
}
_WRITE = (403, 404, 408, 409, 413, 415, 500)


def _answer(description: str, schema: str, headers: Schema | None = None) -> Schema:
    content = {"application/json": {"schema": _ref(schema)}}
    return {"description": description, "content": content, **({"headers": headers} if headers else {})}


def _operation(summary: str, schema: str, *refusals: int, status: int = 200, **more: Any) -> Schema:
    headers = more.pop("headers", None)
    answers = {str(status): _answer("Done.", schema, headers)}
    for code in sorted({*refusals, 503}):
        retry = {"Retry-After": {"schema": _INT}} if code == 503 else None
        answers[str(code)] = _answer(_REFUSALS[code], "Errors", retry)
    return {"summary": summary, "responses": answers, **more}


def _collection(name: str, item: str) -> Schema:
    return _object(**{name: _list(_ref(item))})


def _parameter(name: str, schema: Schema, description: str, place: str = "query") -> Schema:
    required = {"required": True} if place == "path" else {}
    return {"name": name, "in": place, "schema": schema, "description": description, **required}


def _body(schema: Schema, *, required: bool) -> Schema:
    return {"required": required, "content": {"application/json": {"schema": schema}}}


_ID = _parameter("query", _TEXT, "The id of a streaming query; its dashes may be left out.", "path")
_NR = _parameter("number", {"type": "integer", "minimum": 1}, "The number of a decision.", "path")
_SEARCH = _parameter("search", _TEXT, "Only those whose name or id has this in it.")
_OFFSET = _parameter("offset", _WHOLE, "Without so many of the first.")
_BEFORE = _parameter("before", _WHOLE, "Only those with a lower number.")
_AFTER = _parameter("after", _WHOLE, "Only those with a higher number.")
_SINCE = _parameter("after", {**_TIME, "minimum": 0, "maximum": LATEST}, "Only what happened later.")


def _limit(most: int) -> Schema:
    return _parameter("limit", {"type": "integer", "minimum": 1, "maximum": most}, "At most so many.")


_ETAG = {"ETag": {"schema": _TEXT, "description": "Changes with the bounds."}}
_IF_MATCH = _parameter("If-Match", _TEXT, "The ETag of the bounds that are to be replaced.", "header")

_REQUIREMENTS: Schema = {
    "parameters": [_ID],
    "get": _operation("Show the bounds in force.", "ResourceRequirements", 404, headers=_ETAG),
    "put": _operation(
        "Set other bounds.",
        "Empty",
        *_WRITE,
        400,
        412,
        parameters=[_IF_MATCH],
        requestBody=_body(_ref("ResourceRequirements"), required=True),
    ),
}


def _order(summary: str, body: str) -> Schema:
    """Describe a POST that orders something, and the PUT that does the same."""
    more: dict[str, Any] = {"status": 202, "requestBody": _body(_ref(body), required=False)}
    return {
        "post": _operation(f"{summary}.", "Empty", *_WRITE, 400, **more),
        "put": _operation(f"{summary}, through a proxy that passes no POST.", "Empty", *_WRITE, 400, **more),
    }


def document() -> Schema:
    """Return the description as a JSON-ready object."""
    collections = {
        "Rescales": _collection("rescales", "Rescale"),
        "Savepoints": _collection("savepoints", "Savepoint"),
        "Exceptions": _collection("exceptions", "Exception"),
        "Decisions": _collection("decisions", "Decision"),
    }
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
            "/queries/{query}/resource-requirements": _REQUIREMENTS,
            "/jobs/{query}/resource-requirements": _REQUIREMENTS,
            "/queries/{query}/stop": {
                "parameters": [_ID],
                **_order("Stop a query for good", "Empty"),
            },
            "/queries/{query}/savepoints": {
                "parameters": [_ID],
                "get": _operation("List the savepoints of a query, the newest first.", "Savepoints", 404),
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
                        _parameter("query", _TEXT, "Only those about the query with this id."),
                        _parameter("kind", _one_of(DecisionKind), "Only those of this kind."),
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
        "components": {"schemas": {**_SCHEMAS, **collections, "Document": {"type": "object"}}},
    }
