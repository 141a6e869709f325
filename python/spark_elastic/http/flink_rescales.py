"""Rescales in the form that Flink's own clients read (2.3, FLIP-495), with its names and ids of 32 digits.

A record has the vertex that was rescaled, the shuffle. The query's bounds and slots are known only if its
requirements then are those in force. A resource profile is never known, and is written as Flink writes an
unknown one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import falcon
from attrs import frozen

from spark_elastic.core.bounds.requirements import SHUFFLE, Bounds, Requirements, SlotGroup
from spark_elastic.core.query_view import QueryView
from spark_elastic.core.rescale.history import Cause, RescaleRecord, Status, Stay
from spark_elastic.http.bounds_body import VERTEX_ID, vertex_id
from spark_elastic.http.errors import Refusal, as_json, current, find
from spark_elastic.http.shapes import (
    INT,
    NUMBER,
    TEXT,
    TIME,
    Json,
    Member,
    Object,
    Shape,
    choice,
    list_,
    map_,
    or_null,
)
from spark_elastic.runtime.publisher import Publisher

_CAUSES: Mapping[Cause, str] = {
    "initial_schedule": "INITIAL_SCHEDULE",
    "update_requirement": "UPDATE_REQUIREMENT",
    "new_resources": "NEW_RESOURCE_AVAILABLE",
    # In Flink, a lost worker makes its jobs fail.
    "lost_resources": "RECOVERABLE_FAILOVER",
    # Flink's autoscaler sets other requirements.
    "load_changed": "UPDATE_REQUIREMENT",
    "recoverable_failover": "RECOVERABLE_FAILOVER",
}
_ENDED: tuple[Status, ...] = ("completed", "failed", "ignored")


def rescale_id(query: str, record: RescaleRecord) -> str:
    """Return the id of a rescale: 32 hexadecimal digits, in lower case."""
    return vertex_id(query, f"rescale {record.number}")


@frozen
class _Kept:
    """A rescale of a query that is kept; `states` adds the states of the query during it."""

    view: QueryView
    record: RescaleRecord
    states: bool = False

    def id(self, what: str) -> str:
        return vertex_id(self.view.facts.query, what)

    @property
    def group(self) -> str:
        return self.view.requirements.shuffle.group

    @property
    def group_id(self) -> str:
        return self.id(f"group {self.group}")

    @property
    def known(self) -> Requirements | None:
        """The requirements at that time, None if they are no longer in force."""
        return self.view.requirements if self.record.requirements == self.view.requirements_number else None

    @property
    def bounds(self) -> Bounds | None:
        return None if self.known is None else self.known.shuffle.bounds

    @property
    def slots(self) -> SlotGroup | None:
        return None if self.known is None else self.known.groups[self.group]


def _at(ordered: Sequence[int], part: float) -> float | str:
    """Return a quantile as Flink does: at position `part` of n + 1, with linear interpolation."""
    if not ordered:
        return "NaN"
    place = part * (len(ordered) + 1)
    below = math.floor(place)
    if below < 1:
        return float(ordered[0])
    if below >= len(ordered):
        return float(ordered[-1])
    lower, upper = ordered[below - 1], ordered[below]
    return lower + (place - below) * (upper - lower)


_QUANTILE = Shape[float | str]({"anyOf": [NUMBER.schema, {"const": "NaN"}]})
_UNKNOWN_PROFILE = Object[_Kept](
    cpuCores=NUMBER.of(lambda _: -1.0),
    taskHeapMemory=INT.of(lambda _: -1),
    taskOffHeapMemory=INT.of(lambda _: -1),
    managedMemory=INT.of(lambda _: -1),
    networkMemory=INT.of(lambda _: -1),
    extendedResources=Shape[Json]({"type": "object"}).of(lambda _: {}),
)
_VERTEX = Object[_Kept](
    jobVertexId=VERTEX_ID.of(lambda it: it.id(SHUFFLE)),
    jobVertexName=TEXT.of(lambda _: SHUFFLE),
    slotSharingGroupId=VERTEX_ID.of(lambda it: it.group_id),
    slotSharingGroupName=TEXT.of(lambda it: it.group),
    desiredParallelism=or_null(INT).of(lambda it: None if it.bounds is None else it.bounds.upper),
    sufficientParallelism=or_null(INT).of(lambda it: None if it.bounds is None else it.bounds.lower),
    preRescaleParallelism=or_null(INT).of(lambda it: it.record.partitions_before),
    postRescaleParallelism=or_null(INT).of(lambda it: it.record.partitions_after),
)
_GROUP = Object[_Kept](
    slotSharingGroupId=VERTEX_ID.of(lambda it: it.group_id),
    slotSharingGroupName=TEXT.of(lambda it: it.group),
    requestResourceProfile=_UNKNOWN_PROFILE.of(lambda it: it),
    desiredSlots=or_null(INT).of(lambda it: None if it.slots is None else it.slots.upper),
    minimalRequiredSlots=or_null(INT).of(lambda it: None if it.slots is None else it.slots.lower),
    preRescaleSlots=or_null(INT).of(lambda it: it.record.slots_before),
    postRescaleSlots=or_null(INT).of(lambda it: it.record.slots_after),
    acquiredResourceProfile=_UNKNOWN_PROFILE.of(lambda it: it),
)
_STATE = Object[Stay](
    state=TEXT.of(lambda it: it.state),
    enterTimestampInMillis=TIME.of(lambda it: it.entered),
    leaveTimestampInMillis=or_null(TIME).of(lambda it: it.left),
    durationInMillis=or_null(INT).of(lambda it: None if it.left is None else it.left - it.entered),
    stringifiedException=or_null(TEXT).of(lambda _: None),
)
_BY_ID = "By ids of 32 hexadecimal digits."
DETAILS = Object[_Kept](
    "JobRescaleDetails",
    rescaleUuid=VERTEX_ID.of(lambda it: rescale_id(it.view.facts.query, it.record)),
    resourceRequirementsUuid=VERTEX_ID.of(lambda it: it.id(f"requirements {it.record.requirements}")),
    rescaleAttemptId=INT.of(lambda it: it.record.attempt),
    vertices=map_(_VERTEX, _BY_ID).of(lambda it: {it.id(SHUFFLE): it}),
    slots=map_(_GROUP, _BY_ID).of(lambda it: {it.group_id: it}),
    schedulerStates=or_null(list_(_STATE)).of(lambda it: it.record.stays if it.states else None),
    startTimestampInMillis=TIME.of(lambda it: it.record.started),
    endTimestampInMillis=or_null(TIME).of(lambda it: it.record.ended),
    terminalState=or_null(choice("COMPLETED", "FAILED", "IGNORED")).of(
        lambda it: it.record.status.upper() if it.record.status in _ENDED else None
    ),
    triggerCause=TEXT.of(lambda it: _CAUSES[it.record.cause]),
    terminatedReason=or_null(TEXT).of(lambda it: it.record.reason and it.record.reason.upper()),
)


def _count(status: Status) -> Member[QueryView]:
    return INT.of(lambda view: sum(record.status == status for record in view.history))


_COUNTS = Object[QueryView](
    ignored=_count("ignored"),
    inProgress=_count("in_progress"),
    completed=_count("completed"),
    failed=_count("failed"),
)


def _last(status: Status) -> Member[QueryView]:
    return or_null(DETAILS).of(
        lambda view: next((_Kept(view, record) for record in view.history if record.status == status), None)
    )


OVERVIEW = Object[QueryView](
    "JobRescalesOverview",
    rescalesCounts=_COUNTS.of(lambda view: view),
    latest=Object[QueryView](
        completed=_last("completed"), failed=_last("failed"), ignored=_last("ignored")
    ).of(lambda view: view),
)
HISTORY = Shape[QueryView](
    list_(DETAILS).schema,
    lambda view: [DETAILS.json(_Kept(view, record)) for record in view.history],
    "JobRescalesHistory",
)


def _quantile(part: float) -> Member[Sequence[int]]:
    return _QUANTILE.of(lambda took: _at(took, part))


# How long rescales took (ms), the shortest first. Without any, the quantiles are the text "NaN", as in Flink.
_STATS = Object[Sequence[int]](
    min=INT.of(lambda took: min(took, default=0)),
    max=INT.of(lambda took: max(took, default=0)),
    avg=INT.of(lambda took: sum(took) // len(took) if took else 0),
    p50=_quantile(0.5),
    p90=_quantile(0.9),
    p95=_quantile(0.95),
    p99=_quantile(0.99),
    p999=_quantile(0.999),
)


def _took(*of_status: Status) -> Member[QueryView]:
    return _STATS.of(
        lambda view: sorted(
            record.ended - record.started
            for record in view.history
            if record.status in of_status and record.ended is not None
        )
    )


SUMMARY = Object[QueryView](
    "JobRescalesSummary",
    rescalesCounts=_COUNTS.of(lambda view: view),
    rescalesDurationStatsInMillis=_took(*_ENDED),
    completedRescalesDurationStatsInMillis=_took("completed"),
    failedRescalesDurationStatsInMillis=_took("failed"),
    ignoredRescalesDurationStatsInMillis=_took("ignored"),
)


# ---- GET /jobs/{id}/rescales/overview, …/history, …/summary and …/details/{rescale}, as in Flink 2.3.


PARTS: Mapping[str, Shape[QueryView]] = {"overview": OVERVIEW, "history": HISTORY, "summary": SUMMARY}


@frozen
class JobRescales:
    """One `part` of Flink's API for the kept rescales of a query."""

    publisher: Publisher
    part: str

    def on_get(self, _: falcon.Request, response: falcon.Response, query: str) -> None:
        """Show this part."""
        response.text = as_json(PARTS[self.part].json(find(current(self.publisher).queries, query)))


@frozen
class RescaleDetails:
    """One rescale of a query."""

    publisher: Publisher

    def on_get(self, _: falcon.Request, response: falcon.Response, query: str, rescale: str) -> None:
        """Show the rescale, with the states of the query during it."""
        view = find(current(self.publisher).queries, query)
        for record in view.history:
            if rescale_id(view.facts.query, record) == rescale.lower():
                response.text = as_json(DETAILS.json(_Kept(view, record, states=True)))
                return
        raise Refusal(404, f"no rescale of this query that is kept has the id '{rescale[:60]}'")
