"""What the answers and bodies of the API look like: a JSON schema for each, by its name."""

from __future__ import annotations

from spark_elastic.core.actions import DecisionKind
from spark_elastic.core.batch.questions import QUESTION_TYPES
from spark_elastic.core.events import Trigger
from spark_elastic.core.keys.rescaling import Mode
from spark_elastic.core.query.transitions import TRANSITIONS
from spark_elastic.core.rescale.history import Cause, Status, TerminatedReason
from spark_elastic.rest.schema import (
    BOOL,
    COUNT,
    INT,
    MS,
    NUMBER,
    TEXT,
    TIME,
    Schema,
    list_,
    object_,
    one_of,
    or_null,
    ref,
    said,
)

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
        maxParallelism={"type": "integer", "description": "What an upper bound of -1 stands for."},
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
            "description": "What this Spark lacks besides parts, and which version has it.",
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
        target=said(or_null(COUNT), "Partitions that it is on its way to; null: none."),
        requirements=ref("ResourceRequirements"),
        vertexIds={
            "type": "object",
            "description": "The id by which a client of Flink knows each vertex.",
            "propertyNames": _VERTEX_NAME,
            "additionalProperties": {"type": "string", "pattern": _VERTEX_ID},
        },
        boundBy={"type": "string", "description": "Where the upper bound comes from."},
        slots={**COUNT, "description": "The slots that it can use; of too few, those that others leave it."},
        grantedSlots={
            **or_null(COUNT),
            "description": "The slots that spark.elastic.policy lets it have; null: its bounds count alone.",
        },
        neededSlots={**COUNT, "description": "The slots for its lower bounds."},
        priority=said(INT, "A higher one comes first where there are too few slots for all lower bounds."),
        weight=said(NUMBER, "Its part where there are too few slots for all upper bounds."),
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
        restarts=said(COUNT, "Retries after failures."),
        rescales=said(COUNT, "Moves of its state to another number of partitions."),
        sources={**list_(TEXT), "description": "What is read, in the order of the vertices source-0, …"},
        lastBatch=or_null(ref("Batch")),
        policy=said(
            or_null(ref("Policy")), "What spark.elastic.policy makes of it; null: its bounds count alone."
        ),
        lastDecision=or_null(ref("Decision")),
    ),
    "Policy": object_(
        name=said(TEXT, "The policies that decide, split by commas."),
        wantedSlots=said(COUNT, "The slots that it wants for the query."),
        allowedSlots=said(COUNT, "As many of them as limits allow."),
        reason=said(TEXT, "The code of its last reason."),
        message=said(TEXT, "Why it wants these, and why not more."),
        until=said(
            or_null(TIME), "When it looks again at the latest, in epoch ms; null: when something happens."
        ),
        objective=said(
            or_null(
                object_(
                    load=said(NUMBER, "The part of its time that micro-batches are to take."),
                    loadBand=said(NUMBER, "How far above that the load may be before it goes up."),
                    intervalMs=said(MS, "The trigger interval, 0 without one."),
                    maxLagMs=or_null(MS),
                    catchUpMs=said(MS, "Time in which a backlog is to be processed."),
                )
            ),
            "What it aims at; null, as what follows: not known yet, or there is nothing to read.",
        ),
        load=said(or_null(NUMBER), "The load with the slots of now, by the model."),
        rowsPerSecond=said(or_null(NUMBER), "Rows that arrive."),
        model=said(
            or_null(
                object_(
                    fixedMs=said(NUMBER, "The part of a micro-batch that no slot shortens."),
                    rowUs=said(NUMBER, "Microseconds of one slot for each row."),
                    confidence=said(NUMBER, "From 0 to 1."),
                    points=said(
                        or_null(list_(object_(rowsPerSlot=NUMBER, durationMs=MS))),
                        "The micro-batches that the line is laid through; null in lists of queries.",
                    ),
                )
            ),
            "The line: a micro-batch takes fixed part + rows ÷ slots.",
        ),
        backlog=said(
            or_null(
                object_(
                    rows=said(COUNT, "Rows that have piled up."),
                    withinMs=said(MS, "Time in which they are to be processed."),
                    goneInMs=said(or_null(MS), "The forecast with the slots of now; null: never."),
                )
            ),
            "What has piled up; null: nothing to speak of.",
        ),
        mostRows=said(
            or_null(COUNT),
            "Rows that a micro-batch reads of Kafka at most (`autoscale.backpressure`); null: no limit.",
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
        pausedMs=said(MS, "Milliseconds for which the query did not run."),
        executorsUsed=said(
            or_null(TIME),
            "When the last executor that joined meanwhile had its first task; null: none is known.",
        ),
        warmUpMs=said(or_null(MS), "The longest that one of these was warmed up for before that."),
        states=list_(object_(state=_STATE, entered=TIME, left=or_null(TIME))),
    ),
    "Timeline": object_(
        batches=list_(object_(at=TIME, durationMs=MS, partitions=INT, inputRowsPerSecond=NUMBER)),
        slots=list_(object_(at=TIME, slots=COUNT)),
        lost=list_(object_(at=TIME, executor=TEXT, reason=TEXT)),
    ),
    "Queries": object_(queries=list_(ref("Query")), total=COUNT),
    "Stages": object_(
        stages=list_(ref("Stage")),
        unanswered=said(COUNT, "Questions that Spark's own rules had to decide."),
    ),
    "Stage": object_(
        number=INT,
        at=TIME,
        group=said(TEXT, "The shuffles or the scan that were decided about together."),
        question={"type": "string", "enum": [question.__name__ for question in QUESTION_TYPES]},
        tookUs=said(COUNT, "Microseconds of the policy process."),
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
        summary=said(TEXT, "The error, of a Python traceback the line that says what was raised."),
        errorClass=or_null(TEXT),
        causes=list_(TEXT),
        offsets=said(TEXT, "Up to where the failed micro-batch was to read."),
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
        until=said(or_null(TIME), "Until when something is waited for, in epoch ms."),
    ),
    "Errors": {
        "type": "object",
        "description": "Why a request was refused: a sentence for each error, all of them at once.",
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
