"""Rescales in the form that Flink's own clients read (2.3, FLIP-495), with its names and ids of 32 digits.

A record has the vertex that was rescaled, the shuffle. The query's bounds and slots are known only if its
requirements then are those in force. A resource profile is never known, and is written as Flink writes an
unknown one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import falcon
from attrs import frozen

from spark_elastic.core.bounds.requirements import SHUFFLE
from spark_elastic.core.rescale.history import Cause, RescaleRecord, Status, Stay
from spark_elastic.core.view import QueryView
from spark_elastic.http.errors import Refusal, as_json, current, find
from spark_elastic.http.present import vertex_id
from spark_elastic.runtime.view import Publisher

Json = dict[str, Any]

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
_UNKNOWN_PROFILE: Json = {
    "cpuCores": -1.0,
    "taskHeapMemory": -1,
    "taskOffHeapMemory": -1,
    "managedMemory": -1,
    "networkMemory": -1,
    "extendedResources": {},
}
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}


def rescale_id(query: str, record: RescaleRecord) -> str:
    """Return the id of a rescale: 32 hexadecimal digits, in lower case."""
    return vertex_id(query, f"rescale {record.number}")


def overview(view: QueryView) -> Json:
    """Return the counts of the kept rescales, and the last one of each outcome."""
    latest = {status: next((r for r in view.history if r.status == status), None) for status in _ENDED}
    return {
        "rescalesCounts": _counts(view.history),
        "latest": {
            status: None if record is None else details(view, record) for status, record in latest.items()
        },
    }


def history(view: QueryView) -> list[Json]:
    """Return all kept rescales, newest first."""
    return [details(view, record) for record in view.history]


def summary(view: QueryView) -> Json:
    """Return the counts of the kept rescales, and statistics of how long the finished ones took."""
    took = {
        status: [r.ended - r.started for r in view.history if r.status == status and r.ended is not None]
        for status in _ENDED
    }
    return {
        "rescalesCounts": _counts(view.history),
        "rescalesDurationStatsInMillis": _stats([ms for of_status in took.values() for ms in of_status]),
        **{f"{status}RescalesDurationStatsInMillis": _stats(of_status) for status, of_status in took.items()},
    }


def details(view: QueryView, record: RescaleRecord, *, states: bool = False) -> Json:
    """Return one rescale, with the states of the query during it if `states` is set."""
    ended = record.status in _ENDED
    query = view.facts.query
    vertex, group = vertex_id(query, SHUFFLE), view.requirements.shuffle.group
    group_id = vertex_id(query, f"group {group}")
    known = record.requirements == view.requirements_number
    bounds = view.requirements.shuffle.bounds if known else None
    slots = view.requirements.groups[group] if known else None
    return {
        "rescaleUuid": rescale_id(query, record),
        "resourceRequirementsUuid": vertex_id(query, f"requirements {record.requirements}"),
        "rescaleAttemptId": record.attempt,
        "vertices": {
            vertex: {
                "jobVertexId": vertex,
                "jobVertexName": SHUFFLE,
                "slotSharingGroupId": group_id,
                "slotSharingGroupName": group,
                "desiredParallelism": None if bounds is None else bounds.upper,
                "sufficientParallelism": None if bounds is None else bounds.lower,
                "preRescaleParallelism": record.partitions_before,
                "postRescaleParallelism": record.partitions_after,
            }
        },
        "slots": {
            group_id: {
                "slotSharingGroupId": group_id,
                "slotSharingGroupName": group,
                "requestResourceProfile": _UNKNOWN_PROFILE,
                "desiredSlots": None if slots is None else slots.upper,
                "minimalRequiredSlots": None if slots is None else slots.lower,
                "preRescaleSlots": record.slots_before,
                "postRescaleSlots": record.slots_after,
                "acquiredResourceProfile": _UNKNOWN_PROFILE,
            }
        },
        "schedulerStates": [_state(stay) for stay in record.stays] if states else None,
        "startTimestampInMillis": record.started,
        "endTimestampInMillis": record.ended,
        "terminalState": record.status.upper() if ended else None,
        "triggerCause": _CAUSES[record.cause],
        "terminatedReason": None if record.reason is None else record.reason.upper(),
    }


def _state(stay: Stay) -> Json:
    return {
        "state": stay.state,
        "enterTimestampInMillis": stay.entered,
        "leaveTimestampInMillis": stay.left,
        "durationInMillis": None if stay.left is None else stay.left - stay.entered,
        "stringifiedException": None,
    }


def _counts(records: Sequence[RescaleRecord]) -> Json:
    names: Mapping[str, Status] = {
        "ignored": "ignored",
        "inProgress": "in_progress",
        "completed": "completed",
        "failed": "failed",
    }
    return {name: sum(record.status == status for record in records) for name, status in names.items()}


def _stats(values: Sequence[int]) -> Json:
    """Summarize durations (ms); without any, the quantiles are the text "NaN", as in Flink."""
    ordered = sorted(values)
    if not ordered:
        return {"min": 0, "max": 0, "avg": 0, **dict.fromkeys(_QUANTILES, "NaN")}
    average = sum(ordered) // len(ordered)
    quantiles = {name: _quantile(ordered, part) for name, part in _QUANTILES.items()}
    return {"min": ordered[0], "max": ordered[-1], "avg": average, **quantiles}


def _quantile(ordered: Sequence[int], part: float) -> float:
    """Return a quantile as Flink does: at position `part` of n + 1, with linear interpolation."""
    place = part * (len(ordered) + 1)
    below = math.floor(place)
    if below < 1:
        return float(ordered[0])
    if below >= len(ordered):
        return float(ordered[-1])
    lower, upper = ordered[below - 1], ordered[below]
    return lower + (place - below) * (upper - lower)


# GET /jobs/{id}/rescales/overview, …/history, …/summary and …/details/{rescale}, as in Flink 2.3.


PARTS: Mapping[str, Callable[[QueryView], Any]] = {
    "overview": overview,
    "history": history,
    "summary": summary,
}


@frozen
class JobRescales:
    """One `part` of Flink's API for the kept rescales of a query."""

    publisher: Publisher
    part: str

    def on_get(self, _: falcon.Request, response: falcon.Response, query: str) -> None:
        """Show this part."""
        response.text = as_json(PARTS[self.part](find(current(self.publisher).queries, query)))


@frozen
class RescaleDetails:
    """One rescale of a query."""

    publisher: Publisher

    def on_get(self, _: falcon.Request, response: falcon.Response, query: str, rescale: str) -> None:
        """Show the rescale, with the states of the query during it."""
        view = find(current(self.publisher).queries, query)
        for record in view.history:
            if rescale_id(view.facts.query, record) == rescale.lower():
                response.text = as_json(details(view, record, states=True))
                return
        raise Refusal(404, f"no rescale of this query that is kept has the id '{rescale[:60]}'")
