"""What Flink's paths of rescales answer: a JSON schema for each, by the name that it has there."""

from __future__ import annotations

from collections.abc import Mapping

from spark_elastic.rest.schema import INT, TEXT, TIME, Schema, list_, object_, or_null, ref

_ID: Schema = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
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
_VERTEX = object_(
    jobVertexId=_ID,
    jobVertexName=TEXT,
    slotSharingGroupId=_ID,
    slotSharingGroupName=TEXT,
    desiredParallelism=or_null(INT),
    sufficientParallelism=or_null(INT),
    preRescaleParallelism=or_null(INT),
    postRescaleParallelism=or_null(INT),
)
_GROUP = object_(
    slotSharingGroupId=_ID,
    slotSharingGroupName=TEXT,
    requestResourceProfile=_PROFILE,
    desiredSlots=or_null(INT),
    minimalRequiredSlots=or_null(INT),
    preRescaleSlots=or_null(INT),
    postRescaleSlots=or_null(INT),
    acquiredResourceProfile=_PROFILE,
)
_STATE = object_(
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
        rescaleUuid=_ID,
        resourceRequirementsUuid=_ID,
        rescaleAttemptId=INT,
        vertices=_by_id(_VERTEX),
        slots=_by_id(_GROUP),
        schedulerStates=or_null(list_(_STATE)),
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
