"""The OpenAPI description of the API, as data; the tests check every answer against it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from spark_elastic.core.actions import DecisionKind
from spark_elastic.core.batch.questions import QUESTION_TYPES
from spark_elastic.core.events import Trigger
from spark_elastic.core.keys.rescaling import Mode
from spark_elastic.core.query.record import SAVEPOINTS_KEPT
from spark_elastic.core.rescale.history import Cause, Status, TerminatedReason
from spark_elastic.core.transitions import TRANSITIONS
from spark_elastic.http.errors import LARGEST, LATEST
from spark_elastic.runtime.decided_stages import STAGES_KEPT
from spark_elastic.runtime.view import DECISIONS_KEPT
from spark_elastic.version import __version__

# The building blocks of the API's JSON schemas.


Schema = dict[str, Any]
"""A JSON schema, or another part of the API's description."""

TEXT: Schema = {"type": "string"}
INT: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
BOOL: Schema = {"type": "boolean"}
TIME: Schema = {"type": "integer", "description": "Epoch ms."}
MS: Schema = {"type": "integer", "description": "Milliseconds."}
COUNT: Schema = {"type": "integer", "minimum": 0}
WHOLE: Schema = {"type": "integer", "minimum": 0, "maximum": LARGEST}


def or_null(schema: Schema) -> Schema:
    """Return a schema that also allows null."""
    return {"anyOf": [schema, {"type": "null"}]}


def one_of(literal: Any) -> Schema:
    """Return the schema of a text that is one of a literal type's values."""
    return {"type": "string", "enum": list(get_args(literal))}


def said(schema: Schema, description: str) -> Schema:
    """Return a schema with a description of its value."""
    return {**schema, "description": description}


def list_(schema: Schema) -> Schema:
    """Return the schema of a list of such values."""
    return {"type": "array", "items": schema}


def object_(optional: Schema | None = None, /, **members: Schema) -> Schema:
    """Return the schema of an object that has all `members`, may have `optional` ones, and no others."""
    return {
        "type": "object",
        "properties": {**members, **(optional or {})},
        "required": list(members),
        "additionalProperties": False,
    }


def ref(name: str) -> Schema:
    """Return a reference to one of the schemas by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


# The answers of Flink's paths for rescales: a JSON schema for each, by its name in Flink.


_FLINK_ID: Schema = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
_DOUBLE: Schema = {"type": "number"}
_QUANTILE: Schema = {"anyOf": [_DOUBLE, {"const": "NaN"}]}
_PROFILE = object_(
    cpuCores=_DOUBLE,
    taskHeapMemory=INT,
    taskOffHeapMemory=INT,
    managedMemory=INT,
    networkMemory=INT,
    extendedResources={"type": "object"},
)
_FLINK_VERTEX = object_(
    jobVertexId=_FLINK_ID,
    jobVertexName=TEXT,
    slotSharingGroupId=_FLINK_ID,
    slotSharingGroupName=TEXT,
    desiredParallelism=or_null(INT),
    sufficientParallelism=or_null(INT),
    preRescaleParallelism=or_null(INT),
    postRescaleParallelism=or_null(INT),
)
_GROUP = object_(
    slotSharingGroupId=_FLINK_ID,
    slotSharingGroupName=TEXT,
    requestResourceProfile=_PROFILE,
    desiredSlots=or_null(INT),
    minimalRequiredSlots=or_null(INT),
    preRescaleSlots=or_null(INT),
    postRescaleSlots=or_null(INT),
    acquiredResourceProfile=_PROFILE,
)
_FLINK_STATE = object_(
    state=TEXT,
    enterTimestampInMillis=TIME,
    leaveTimestampInMillis=or_null(TIME),
    durationInMillis=or_null(INT),
    stringifiedException=or_null(TEXT),
)
_COUNTS = object_(ignored=INT, inProgress=INT, completed=INT, failed=INT)
_STATS = object_(
    min=INT,
    max=INT,
    avg=INT,
    **dict.fromkeys(("p50", "p90", "p95", "p99", "p999"), _QUANTILE),
)


def _by_id(schema: Schema) -> Schema:
    return {
        "type": "object",
        "description": "By ids of 32 hexadecimal digits.",
        "additionalProperties": schema,
    }


def _or_nothing(name: str) -> Schema:
    return or_null(ref(name))


FLINK_SCHEMAS: Mapping[str, Schema] = {
    "JobRescaleDetails": object_(
        rescaleUuid=_FLINK_ID,
        resourceRequirementsUuid=_FLINK_ID,
        rescaleAttemptId=INT,
        vertices=_by_id(_FLINK_VERTEX),
        slots=_by_id(_GROUP),
        schedulerStates=or_null(list_(_FLINK_STATE)),
        startTimestampInMillis=TIME,
        endTimestampInMillis=or_null(TIME),
        terminalState=or_null({"type": "string", "enum": ["COMPLETED", "FAILED", "IGNORED"]}),
        triggerCause=TEXT,
        terminatedReason=or_null(TEXT),
    ),
    "JobRescalesOverview": object_(
        rescalesCounts=_COUNTS,
        latest=object_(
            completed=_or_nothing("JobRescaleDetails"),
            failed=_or_nothing("JobRescaleDetails"),
            ignored=_or_nothing("JobRescaleDetails"),
        ),
    ),
    "JobRescalesHistory": list_(ref("JobRescaleDetails")),
    "JobRescalesSummary": object_(
        rescalesCounts=_COUNTS,
        rescalesDurationStatsInMillis=_STATS,
        completedRescalesDurationStatsInMillis=_STATS,
        failedRescalesDurationStatsInMillis=_STATS,
        ignoredRescalesDurationStatsInMillis=_STATS,
    ),
}


# The answers and bodies of the API: a JSON schema for each, by name.


_STATE: Schema = {"type": "string", "enum": list(TRANSITIONS)}
_BOUND: Schema = {
    "type": "integer",
    "minimum": -1,
    "maximum": 2**31 - 1,
    "description": "A whole number from 1 up, or -1 for no bound.",
}

_VERTEX_ID = "^[0-9a-f]{32}$"
_VERTEX_NAME: Schema = {"type": "string", "pattern": "^(shuffle|source-[0-9]+)$"}
_TARGET = {
    **_BOUND,
    "description": "Partitions wanted where no policy decides; -1: no target; left out: unchanged.",
}
_VERTEX = object_(parallelism=object_(lowerBound=_BOUND, upperBound=_BOUND))
_SHUFFLE = object_(parallelism=object_({"target": _TARGET}, lowerBound=_BOUND, upperBound=_BOUND))

SCHEMAS: dict[str, Schema] = {
    "Overview": object_(
        application=object_(id=TEXT, name=TEXT),
        version=TEXT,
        sparkVersion=TEXT,
        at=TIME,
        mode={"type": "string", "enum": ["reactive", "adaptive"]},
        adviseOnly=BOOL,
        readOnly=BOOL,
        ended={
            "type": "boolean",
            "description": "Whether this is from the event log of an ended application.",
        },
        mayWrite={"type": "boolean", "description": "Whether the caller may make changes."},
        maxParallelism={"type": "integer", "description": "The value of an upper bound of -1."},
        policyRestarts=said(COUNT, "Policy processes before this one."),
        slots=object_(
            now=COUNT,
            desired=said(or_null(COUNT), "The upper bounds of all queries together; null: one has none."),
        ),
        executors=list_(
            object_(
                id=TEXT,
                host=TEXT,
                cores=COUNT,
                slots=COUNT,
                excluded=BOOL,
                exclusion=said(
                    or_null(TEXT), "Why Spark has excluded it; null: it has not, or that is not known."
                ),
                decommissioning=BOOL,
            )
        ),
        queries={
            "type": "object",
            "description": "How many queries are in each state.",
            "propertyNames": _STATE,
            "additionalProperties": COUNT,
        },
        customPolicies={
            **list_(
                object_(
                    name=TEXT,
                    answers=COUNT,
                    failures=COUNT,
                    error=or_null(TEXT),
                    since=or_null(TIME),
                    retryAt=or_null(TIME),
                )
            ),
            "description": "The custom policies that have been asked: why one has no answer now, since when, "
            "and when it is asked again; null: it has one.",
        },
        parts={
            **list_(object_(name=TEXT, on=BOOL, reason=or_null(TEXT))),
            "description": "What the plugin can do here, and why not all; empty: not told.",
        },
        lacks={
            **list_(object_(what=TEXT, why=TEXT, instead=TEXT, since=TEXT)),
            "description": "Other features that this Spark lacks, and which version has them.",
        },
    ),
    "Query": object_(
        id=said(TEXT, "The id of its checkpoint, the same in each run."),
        name=or_null(TEXT),
        run=said(TEXT, "The id of its run."),
        state=_STATE,
        stateful=BOOL,
        trigger=one_of(Trigger),
        triggerMs=MS,
        partitions=said(or_null(COUNT), "Shuffle partitions in force; null: not known yet."),
        target=said(or_null(COUNT), "Partitions that it is scaling to; null: none."),
        requirements=ref("ResourceRequirements"),
        vertexIds={
            "type": "object",
            "description": "The id by which a client of Flink knows each vertex.",
            "propertyNames": _VERTEX_NAME,
            "additionalProperties": {"type": "string", "pattern": _VERTEX_ID},
        },
        boundBy={"type": "string", "description": "Where the upper bound comes from."},
        slots={
            **COUNT,
            "description": "The slots that it can use; if there are too few, those that others leave.",
        },
        grantedSlots={
            **or_null(COUNT),
            "description": "The slots that spark.elastic.policy allows; null: only its bounds apply.",
        },
        neededSlots={**COUNT, "description": "The slots for its lower bounds."},
        priority=said(INT, "If there are too few slots for all lower bounds, higher priority comes first."),
        weight=said(NUMBER, "Its share if there are too few slots for all upper bounds."),
        slotSharingGroups={
            "type": "object",
            "description": "The slot sharing group of each vertex: slots are shared within a group only.",
            "additionalProperties": TEXT,
        },
        mode=one_of(Mode),
        settings={
            "type": "object",
            "description": "The settings in which it differs from the application: name (without "
            "spark.elastic.) and value.",
            "additionalProperties": TEXT,
        },
        restarts=said(COUNT, "Retries after failures."),
        rescales=said(COUNT, "Moves of its state to another number of partitions."),
        sources={**list_(TEXT), "description": "What is read, in the order of the vertices source-0, …"},
        lastBatch=or_null(ref("Batch")),
        policy=said(
            or_null(ref("Policy")), "The decision of spark.elastic.policy; null: only its bounds apply."
        ),
        lastDecision=or_null(ref("Decision")),
    ),
    "Policy": object_(
        name=said(TEXT, "The policies that decide, split by commas."),
        wantedSlots=said(COUNT, "The slots that it wants for the query."),
        allowedSlots=said(COUNT, "Of these, the slots that limits allow."),
        reason=said(TEXT, "The code of its last reason."),
        message=said(TEXT, "Why it wants these slots, and not more."),
        until=said(
            or_null(TIME), "When it decides again at the latest, in epoch ms; null: at the next event."
        ),
        objective=said(
            or_null(
                object_(
                    load=said(NUMBER, "Target share of time that micro-batches take."),
                    loadBand=said(NUMBER, "How far above that the load may be before scaling up."),
                    intervalMs=said(MS, "The trigger interval, 0 without one."),
                    maxLagMs=or_null(MS),
                    catchUpMs=said(MS, "Time in which a backlog should be processed."),
                )
            ),
            "Its objective; null, like what follows: not known yet, or nothing to read.",
        ),
        load=said(or_null(NUMBER), "The predicted load with the current slots."),
        rowsPerSecond=said(or_null(NUMBER), "Rows that arrive."),
        model=said(
            or_null(
                object_(
                    fixedMs=said(NUMBER, "The part of a micro-batch that more slots do not shorten."),
                    rowUs=said(NUMBER, "Microseconds of slot time per row."),
                    confidence=said(NUMBER, "From 0 to 1."),
                    points=said(
                        or_null(list_(object_(rowsPerSlot=NUMBER, durationMs=MS))),
                        "The micro-batches that the line is fitted to; null in lists of queries.",
                    ),
                )
            ),
            "The line: a micro-batch takes fixed part + rows ÷ slots.",
        ),
        backlog=said(
            or_null(
                object_(
                    rows=said(COUNT, "Rows in the backlog."),
                    withinMs=said(MS, "Time in which they should be processed."),
                    goneInMs=said(or_null(MS), "The forecast with the current slots; null: never."),
                )
            ),
            "The backlog; null: none worth mentioning.",
        ),
        mostRows=said(
            or_null(COUNT),
            "Max rows that a micro-batch reads from Kafka (`autoscale.backpressure`); null: no limit.",
        ),
    ),
    "Batch": object_(
        batch=INT,
        started=TIME,
        durationMs=MS,
        partitions=INT,
        inputRows=INT,
        inputRowsPerSecond=NUMBER,
        processedRowsPerSecond=NUMBER,
        stateRows=INT,
        stateBytes=INT,
        offsetsBehind=or_null(
            {
                **object_(avg=NUMBER, max=INT, min=INT),
                "description": "Records not read by the partitions of the source that is furthest behind.",
            }
        ),
        sources=list_(object_(vertex=TEXT, inputRows=INT, tasks=or_null(COUNT))),
    ),
    "ResourceRequirements": {
        "type": "object",
        "description": "Bounds by vertex, in Flink's form: the query's shuffle, and in adaptive mode its "
        "sources, source-0 and so on.",
        "properties": {"shuffle": _SHUFFLE},
        "patternProperties": {"^source-[0-9]+$": _VERTEX},
        "required": ["shuffle"],
        "additionalProperties": False,
    },
    "JobResourceRequirements": {
        "type": "object",
        "description": "The same with the ids of the vertices, which Flink's own clients want.",
        "patternProperties": {_VERTEX_ID: _VERTEX},
        "minProperties": 1,
        "additionalProperties": False,
    },
    "WantedRequirements": {
        "type": "object",
        "description": "Bounds by vertex, each called by its name or by its id. The query's shuffle has to "
        "be there; a source that is left out keeps its bounds.",
        "patternProperties": {"^(shuffle|source-[0-9]+|[0-9a-fA-F]{32})$": _SHUFFLE},
        "minProperties": 1,
        "additionalProperties": False,
    },
    "Rescale": object_(
        number=INT,
        requirements={"type": "integer", "description": "Counts the bounds that the query has had."},
        attempt={"type": "integer", "description": "Counts the rescales with these bounds."},
        cause=one_of(Cause),
        status=one_of(Status),
        reason=or_null(one_of(TerminatedReason)),
        started=TIME,
        ended=or_null(TIME),
        slotsBefore=or_null(COUNT),
        slotsAfter=or_null(COUNT),
        partitionsBefore=or_null(COUNT),
        partitionsAfter=or_null(COUNT),
        pausedMs=said(MS, "Milliseconds during which the query was paused."),
        executorsUsed=said(
            or_null(TIME),
            "When the last executor that joined meanwhile got its first task; null: unknown.",
        ),
        warmUpMs=said(or_null(MS), "The longest warm-up among these executors."),
        states=list_(object_(state=_STATE, entered=TIME, left=or_null(TIME))),
    ),
    "Timeline": object_(
        batches=list_(object_(at=TIME, durationMs=MS, partitions=INT, inputRowsPerSecond=NUMBER)),
        slots=list_(object_(at=TIME, slots=COUNT)),
        lost=list_(object_(at=TIME, executor=TEXT, reason=TEXT, released=BOOL)),
    ),
    "Queries": object_(queries=list_(ref("Query")), total=COUNT),
    "Stages": object_(
        stages=list_(ref("Stage")),
        unanswered=said(COUNT, "Questions that were left to Spark's own rules."),
    ),
    "Stage": object_(
        number=INT,
        at=TIME,
        group=said(TEXT, "The shuffles or the scan of this decision."),
        question={"type": "string", "enum": [question.__name__ for question in QUESTION_TYPES]},
        tookUs=said(COUNT, "Microseconds that the policy process took."),
        kind=one_of(DecisionKind),
        reason=TEXT,
        message=TEXT,
        before=or_null(COUNT),
        after=or_null(COUNT),
        numbers=said({"type": "object"}, "What was compared."),
        sizes=or_null(ref("Sizes")),
    ),
    "Sizes": {
        **object_(
            of={"type": "string", "enum": ["tasks", "partitions"]},
            count=COUNT,
            total=COUNT,
            smallest=COUNT,
            median=COUNT,
            largest=COUNT,
            buckets=list_(COUNT),
        ),
        "description": "Bytes of tasks, or of partitions where Spark makes its own tasks of them. The "
        "buckets count them in equal steps from 0 to the largest.",
    },
    "Savepoint": object_(
        at=TIME,
        path=TEXT,
        batch=said(COUNT, "The last micro-batch in it."),
        bytes=said(COUNT, "Its size."),
    ),
    "SavepointRequest": {
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
            "stop": {"type": "boolean", "description": "Whether the query ends with it."},
        },
        "additionalProperties": False,
    },
    "Exception": object_(
        at=TIME,
        error=TEXT,
        summary=said(TEXT, "The error; of a Python traceback, the line that says what was raised."),
        errorClass=or_null(TEXT),
        causes=list_(TEXT),
        offsets=said(TEXT, "The end offsets of the failed micro-batch."),
        reason={"type": "string", "description": "The code of the decision that followed."},
    ),
    "Decision": object_(
        number=INT,
        query=or_null(TEXT),
        name=said(or_null(TEXT), "What the query is called; null: it has no name."),
        at=TIME,
        kind=one_of(DecisionKind),
        reason=TEXT,
        message=TEXT,
        cause=said(TEXT, "The id of the event that led to it."),
        before=said(or_null(INT), "Partitions, slots or executors before."),
        after=said(or_null(INT), "The same afterwards."),
        numbers={
            "type": "object",
            "description": "What was compared.",
            "additionalProperties": {"anyOf": [NUMBER, TEXT]},
        },
        alternatives=list_(TEXT),
        until=said(or_null(TIME), "The end of a wait, in epoch ms."),
    ),
    "Errors": {
        "type": "object",
        "description": "Why a request was refused: one sentence for each error, all at once.",
        "properties": {
            "errors": {**list_(TEXT), "minItems": 1},
            "problems": list_(object_(code=TEXT, where=TEXT, message=TEXT)),
        },
        "required": ["errors"],
        "additionalProperties": False,
    },
    "Empty": {"type": "object", "description": "An object without members.", "maxProperties": 0},
    "Rescales": object_(rescales=list_(ref("Rescale"))),
    "Savepoints": object_(savepoints=list_(ref("Savepoint"))),
    "Exceptions": object_(exceptions=list_(ref("Exception"))),
    "Decisions": object_(decisions=list_(ref("Decision"))),
    "Document": {"type": "object", "description": "The OpenAPI description."},
}


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
_SEARCH = _parameter("search", TEXT, "Only those with this in their name or id.")
_OFFSET = _parameter("offset", WHOLE, "Skip this many of the first.")
_BEFORE = _parameter("before", WHOLE, "Only those with a lower number.")
_AFTER = _parameter("after", WHOLE, "Only those with a higher number.")
_SINCE = _parameter("after", {**TIME, "minimum": 0, "maximum": LATEST}, "Only what happened later.")


def _limit(most: int) -> Schema:
    return _parameter("limit", {"type": "integer", "minimum": 1, "maximum": most}, "At most this many.")


_ETAG = {"ETag": {"schema": TEXT, "description": "Changes with the bounds."}}
_IF_MATCH = _parameter("If-Match", TEXT, "The ETag of the bounds to replace.", "header")


def _requirements(shown: str) -> Schema:
    """Describe the operations on a query's bounds; `shown` is the name of the schema that GET returns."""
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
            "Withdraw the bounds that were set: the configured ones apply.",
            "Empty",
            *_CHANGE,
            412,
            parameters=[_IF_MATCH],
        ),
    }


def _order(summary: str, body: str) -> Schema:
    """Describe a POST that orders something, and the equivalent PUT."""
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
        # Relative to this document, so that it works behind every proxy.
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
                    "Show the recent history of a query, the newest last.",
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
