"""What the answers and bodies of the API look like: a JSON schema for each, by its name."""

from __future__ import annotations

from typing import Any, get_args

from spark_elastic.core.actions import DecisionKind
from spark_elastic.core.batch.questions import QUESTION_TYPES
from spark_elastic.core.events import Trigger
from spark_elastic.core.keys.rescaling import Mode
from spark_elastic.core.query.transitions import TRANSITIONS
from spark_elastic.core.rescale.history import Cause, Status, TerminatedReason
from spark_elastic.rest.parameters import LARGEST

Schema = dict[str, Any]
"""A JSON schema, or a part of the API's description."""

TEXT: Schema = {"type": "string"}
INT: Schema = {"type": "integer"}
_NUMBER: Schema = {"type": "number"}
_BOOL: Schema = {"type": "boolean"}
TIME: Schema = {"type": "integer", "description": "Epoch ms."}
_MS: Schema = {"type": "integer", "description": "Milliseconds."}
_COUNT: Schema = {"type": "integer", "minimum": 0}
WHOLE: Schema = {"type": "integer", "minimum": 0, "maximum": LARGEST}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def one_of(literal: Any) -> Schema:
    """Describe a text that is one of those of a literal type."""
    return {"type": "string", "enum": list(get_args(literal))}


def _said(schema: Schema, description: str) -> Schema:
    """Describe what a schema's value means."""
    return {**schema, "description": description}


def _list(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def _object(optional: Schema | None = None, /, **members: Schema) -> Schema:
    """Describe an object that always has these members, may have `optional` ones, and no others."""
    return {
        "type": "object",
        "properties": {**members, **(optional or {})},
        "required": list(members),
        "additionalProperties": False,
    }


def ref(name: str) -> Schema:
    """Refer to one of the schemas by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


_STATE: Schema = {"type": "string", "enum": list(TRANSITIONS)}
_BOUND: Schema = {
    "type": "integer",
    "minimum": -1,
    "maximum": 2**31 - 1,
    "description": "A whole number from 1 up, or -1 for no bound.",
}

_VERTEX_ID = "^[0-9a-f]{32}$"
_VERTEX_NAME: Schema = {"type": "string", "pattern": "^(shuffle|source-[0-9]+)$"}
_TARGET = {**_BOUND, "description": "As many where no policy speaks; -1: no target; left out: as it is."}
_VERTEX = _object(parallelism=_object(lowerBound=_BOUND, upperBound=_BOUND))
_SHUFFLE = _object(parallelism=_object({"target": _TARGET}, lowerBound=_BOUND, upperBound=_BOUND))

SCHEMAS: dict[str, Schema] = {
    "Overview": _object(
        application=_object(id=TEXT, name=TEXT),
        version=TEXT,
        sparkVersion=TEXT,
        at=TIME,
        mode={"type": "string", "enum": ["reactive", "adaptive"]},
        adviseOnly=_BOOL,
        readOnly=_BOOL,
        ended={
            "type": "boolean",
            "description": "Whether this is from the event log of an ended application.",
        },
        mayWrite={"type": "boolean", "description": "Whether the caller may make changes."},
        maxParallelism={"type": "integer", "description": "What an upper bound of -1 stands for."},
        policyRestarts=_said(_COUNT, "Policy processes before this one."),
        slots=_object(
            now=_COUNT,
            desired=_said(_or_null(_COUNT), "The upper bounds of all queries together; null: one has none."),
        ),
        executors=_list(
            _object(
                id=TEXT,
                host=TEXT,
                cores=_COUNT,
                slots=_COUNT,
                excluded=_BOOL,
                exclusion=_said(
                    _or_null(TEXT), "Why Spark has excluded it; null: it has not, or that is not known."
                ),
                decommissioning=_BOOL,
            )
        ),
        queries={
            "type": "object",
            "description": "How many queries are in each state.",
            "propertyNames": _STATE,
            "additionalProperties": _COUNT,
        },
        customPolicies={
            **_list(
                _object(
                    name=TEXT,
                    answers=_COUNT,
                    failures=_COUNT,
                    error=_or_null(TEXT),
                    since=_or_null(TIME),
                    retryAt=_or_null(TIME),
                )
            ),
            "description": "The custom policies that have been asked: why one has no answer now, since when, "
            "and when it is asked again; null: it has one.",
        },
        parts={
            **_list(_object(name=TEXT, on=_BOOL, reason=_or_null(TEXT))),
            "description": "What the plugin can do here, and why not all; empty: not told.",
        },
        lacks={
            **_list(_object(what=TEXT, why=TEXT, instead=TEXT, since=TEXT)),
            "description": "What this Spark lacks besides parts, and which version has it.",
        },
    ),
    "Query": _object(
        id=_said(TEXT, "The id of its checkpoint, the same in each run."),
        name=_or_null(TEXT),
        run=_said(TEXT, "The id of its run."),
        state=_STATE,
        stateful=_BOOL,
        trigger=one_of(Trigger),
        triggerMs=_MS,
        partitions=_said(_or_null(_COUNT), "Shuffle partitions in force; null: not known yet."),
        target=_said(_or_null(_COUNT), "Partitions that it is on its way to; null: none."),
        requirements=ref("ResourceRequirements"),
        vertexIds={
            "type": "object",
            "description": "The id by which a client of Flink knows each vertex.",
            "propertyNames": _VERTEX_NAME,
            "additionalProperties": {"type": "string", "pattern": _VERTEX_ID},
        },
        boundBy={"type": "string", "description": "Where the upper bound comes from."},
        slots={**_COUNT, "description": "The slots that it can use; of too few, those that others leave it."},
        grantedSlots={
            **_or_null(_COUNT),
            "description": "The slots that spark.elastic.policy lets it have; null: its bounds count alone.",
        },
        neededSlots={**_COUNT, "description": "The slots for its lower bounds."},
        priority=_said(INT, "A higher one comes first where there are too few slots for all lower bounds."),
        weight=_said(_NUMBER, "Its part where there are too few slots for all upper bounds."),
        slotSharingGroups={
            "type": "object",
            "description": "The group of each vertex: slots are shared within one, and not between them.",
            "additionalProperties": TEXT,
        },
        mode=one_of(Mode),
        settings={
            "type": "object",
            "description": "The settings in which it differs from the application: name (without "
            "spark.elastic.) and value.",
            "additionalProperties": TEXT,
        },
        restarts=_said(_COUNT, "Retries after failures."),
        rescales=_said(_COUNT, "Moves of its state to another number of partitions."),
        sources={**_list(TEXT), "description": "What is read, in the order of the vertices source-0, …"},
        lastBatch=_or_null(ref("Batch")),
        policy=_said(
            _or_null(ref("Policy")), "What spark.elastic.policy makes of it; null: its bounds count alone."
        ),
        lastDecision=_or_null(ref("Decision")),
    ),
    "Policy": _object(
        name=_said(TEXT, "The policies that decide, split by commas."),
        wantedSlots=_said(_COUNT, "The slots that it wants for the query."),
        allowedSlots=_said(_COUNT, "As many of them as limits allow."),
        reason=_said(TEXT, "The code of its last reason."),
        message=_said(TEXT, "Why it wants these, and why not more."),
        until=_said(
            _or_null(TIME), "When it looks again at the latest, in epoch ms; null: when something happens."
        ),
        objective=_said(
            _or_null(
                _object(
                    load=_said(_NUMBER, "The part of its time that micro-batches are to take."),
                    loadBand=_said(_NUMBER, "How far above that the load may be before it goes up."),
                    intervalMs=_said(_MS, "The trigger interval, 0 without one."),
                    maxLagMs=_or_null(_MS),
                    catchUpMs=_said(_MS, "Time in which a backlog is to be processed."),
                )
            ),
            "What it aims at; null, as what follows: not known yet, or there is nothing to read.",
        ),
        load=_said(_or_null(_NUMBER), "The load with the slots of now, by the model."),
        rowsPerSecond=_said(_or_null(_NUMBER), "Rows that arrive."),
        model=_said(
            _or_null(
                _object(
                    fixedMs=_said(_NUMBER, "The part of a micro-batch that no slot shortens."),
                    rowUs=_said(_NUMBER, "Microseconds of one slot for each row."),
                    confidence=_said(_NUMBER, "From 0 to 1."),
                    points=_said(
                        _or_null(_list(_object(rowsPerSlot=_NUMBER, durationMs=_MS))),
                        "The micro-batches that the line is laid through; null in lists of queries.",
                    ),
                )
            ),
            "The line: a micro-batch takes fixed part + rows ÷ slots.",
        ),
        backlog=_said(
            _or_null(
                _object(
                    rows=_said(_COUNT, "Rows that have piled up."),
                    withinMs=_said(_MS, "Time in which they are to be processed."),
                    goneInMs=_said(_or_null(_MS), "The forecast with the slots of now; null: never."),
                )
            ),
            "What has piled up; null: nothing to speak of.",
        ),
        mostRows=_said(
            _or_null(_COUNT),
            "Rows that a micro-batch reads of Kafka at most (`autoscale.backpressure`); null: no limit.",
        ),
    ),
    "Batch": _object(
        batch=INT,
        started=TIME,
        durationMs=_MS,
        partitions=INT,
        inputRows=INT,
        inputRowsPerSecond=_NUMBER,
        processedRowsPerSecond=_NUMBER,
        stateRows=INT,
        stateBytes=INT,
        offsetsBehind=_or_null(
            {
                **_object(avg=_NUMBER, max=INT, min=INT),
                "description": "Records not read by the partitions of the source that is furthest behind.",
            }
        ),
        sources=_list(_object(vertex=TEXT, inputRows=INT, tasks=_or_null(_COUNT))),
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
    "Rescale": _object(
        number=INT,
        requirements={"type": "integer", "description": "Counts the bounds that the query has had."},
        attempt={"type": "integer", "description": "Counts the rescales with these bounds."},
        cause=one_of(Cause),
        status=one_of(Status),
        reason=_or_null(one_of(TerminatedReason)),
        started=TIME,
        ended=_or_null(TIME),
        slotsBefore=_or_null(_COUNT),
        slotsAfter=_or_null(_COUNT),
        partitionsBefore=_or_null(_COUNT),
        partitionsAfter=_or_null(_COUNT),
        pausedMs=_said(_MS, "Milliseconds for which the query did not run."),
        executorsUsed=_said(
            _or_null(TIME),
            "When the last executor that joined meanwhile had its first task; null: none is known.",
        ),
        warmUpMs=_said(_or_null(_MS), "The longest that one of these was warmed up for before that."),
        states=_list(_object(state=_STATE, entered=TIME, left=_or_null(TIME))),
    ),
    "Timeline": _object(
        batches=_list(_object(at=TIME, durationMs=_MS, partitions=INT, inputRowsPerSecond=_NUMBER)),
        slots=_list(_object(at=TIME, slots=_COUNT)),
        lost=_list(_object(at=TIME, executor=TEXT, reason=TEXT)),
    ),
    "Queries": _object(queries=_list(ref("Query")), total=_COUNT),
    "Stages": _object(
        stages=_list(ref("Stage")),
        unanswered=_said(_COUNT, "Questions that Spark's own rules had to decide."),
    ),
    "Stage": _object(
        number=INT,
        at=TIME,
        group=_said(TEXT, "The shuffles or the scan that were decided about together."),
        question={"type": "string", "enum": [question.__name__ for question in QUESTION_TYPES]},
        tookUs=_said(_COUNT, "Microseconds of the policy process."),
        kind=one_of(DecisionKind),
        reason=TEXT,
        message=TEXT,
        before=_or_null(_COUNT),
        after=_or_null(_COUNT),
        numbers=_said({"type": "object"}, "What was compared."),
        sizes=_or_null(ref("Sizes")),
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
        "description": "Bytes of tasks, or of partitions where Spark makes its own tasks of them. The "
        "buckets count them in equal steps from 0 to the largest.",
    },
    "Savepoint": _object(
        at=TIME,
        path=TEXT,
        batch=_said(_COUNT, "The last micro-batch in it."),
        bytes=_said(_COUNT, "Its size."),
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
    "Exception": _object(
        at=TIME,
        error=TEXT,
        errorClass=_or_null(TEXT),
        causes=_list(TEXT),
        offsets=_said(TEXT, "Up to where the failed micro-batch was to read."),
        reason={"type": "string", "description": "The code of the decision that followed."},
    ),
    "Decision": _object(
        number=INT,
        query=_or_null(TEXT),
        at=TIME,
        kind=one_of(DecisionKind),
        reason=TEXT,
        message=TEXT,
        cause=_said(TEXT, "The id of the event that led to it."),
        before=_said(_or_null(INT), "Partitions, slots or executors before."),
        after=_said(_or_null(INT), "The same afterwards."),
        numbers={
            "type": "object",
            "description": "What was compared.",
            "additionalProperties": {"anyOf": [_NUMBER, TEXT]},
        },
        alternatives=_list(TEXT),
        until=_said(_or_null(TIME), "Until when something is waited for, in epoch ms."),
    ),
    "Errors": {
        "type": "object",
        "description": "Why a request was refused: a sentence for each error, all of them at once.",
        "properties": {
            "errors": {**_list(TEXT), "minItems": 1},
            "problems": _list(_object(code=TEXT, where=TEXT, message=TEXT)),
        },
        "required": ["errors"],
        "additionalProperties": False,
    },
    "Empty": {"type": "object", "description": "An object without members.", "maxProperties": 0},
    "Rescales": _object(rescales=_list(ref("Rescale"))),
    "Savepoints": _object(savepoints=_list(ref("Savepoint"))),
    "Exceptions": _object(exceptions=_list(ref("Exception"))),
    "Decisions": _object(decisions=_list(ref("Decision"))),
    "Document": {"type": "object", "description": "The OpenAPI description."},
}
