"""The JSON of the API. All times are epoch ms; names that end in `Ms` are durations."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from spark_elastic.core.actions import Decision
from spark_elastic.core.bounds.declared import ALLOWED, NO_BOUND, Problem, Refused, WantedBounds, shortened
from spark_elastic.core.bounds.requirements import Bounds, Requirements, joined_groups, source_vertex
from spark_elastic.core.events import QueryProgress
from spark_elastic.core.failures.judge import summary
from spark_elastic.core.keys import application, rescaling
from spark_elastic.core.policies.custom import CustomMetrics
from spark_elastic.core.policies.planner import Plan
from spark_elastic.core.policies.policy import Outlook
from spark_elastic.core.query.record import RunFailure, Savepoint
from spark_elastic.core.rescale.history import RescaleRecord
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.transitions import FINISHED
from spark_elastic.core.view import QueryView
from spark_elastic.http.errors import LARGEST, as_json
from spark_elastic.installation import Spark
from spark_elastic.lacks import lacks_of
from spark_elastic.runtime.decided_stages import DecidedStage, Sizes
from spark_elastic.runtime.timeline import Timeline
from spark_elastic.runtime.view import View
from spark_elastic.version import __version__

# Vertex ids for Flink's REST client, which reads only 32 hexadecimal digits as keys. An id follows from the
# query's id and the vertex's name: nothing has to be stored here, and a client may store it as long as the
# query's id stays.


_BYTES = 16


def vertex_id(query: str, vertex: str) -> str:
    """Return the id of a vertex: 32 hexadecimal digits, in lower case."""
    return hashlib.blake2b(f"{query}/{vertex}".encode(), digest_size=_BYTES).hexdigest()


def vertex_ids(query: str, vertices: Iterable[str]) -> Mapping[str, str]:
    """Return the ids of vertices, by name."""
    return {vertex: vertex_id(query, vertex) for vertex in vertices}


def by_name(
    ids: Mapping[str, str], wanted: Mapping[str, WantedBounds]
) -> Mapping[str, WantedBounds] | Refused:
    """Return bounds by vertex name; each vertex may be given by its name or by its id.

    `ids` are those of the query's vertices, by name. An unknown key stays as it is, for `declare` to refuse.
    """
    names = {id: name for name, id in ids.items()}
    named: dict[str, WantedBounds] = {}
    problems: list[Problem] = []
    for key, bounds in wanted.items():
        name = names.get(key.lower(), key)
        if name in named:
            message = f"vertex {name} is there twice, by its name or id {ids[name]}: keep one of them"
            problems.append(Problem(code="vertex_said_twice", where=name, message=message))
        named[name] = bounds
    return Refused(problems=tuple(problems)) if problems else named


# The JSON of a policy's plan for a query: what it wants, the basis of that, and what it expects.


def plan(view: QueryView, *, points: bool) -> dict[str, Any] | None:
    """Return the plan, None if declared bounds alone count; `points` adds the micro-batches behind it."""
    shown = view.plan
    if shown is None:
        return None
    wish, outlook = shown.granted.wish, shown.outlook
    return {
        "name": ",".join(view.settings.policy),
        "wantedSlots": wish.slots,
        "allowedSlots": shown.granted.slots,
        "reason": wish.reason,
        "message": shown.message,
        "until": wish.until,
        "objective": None if outlook is None else _objective(outlook, view),
        "load": None if outlook is None else round(outlook.load, 3),
        "rowsPerSecond": None if outlook is None else round(outlook.rows_per_second, 1),
        "model": None if outlook is None else _model(outlook, shown, points=points),
        "backlog": None if outlook is None else _backlog(outlook),
        "mostRows": shown.most_rows,
    }


def _objective(outlook: Outlook, view: QueryView) -> dict[str, Any]:
    own: CoreSettings = view.settings
    return {
        "load": round(outlook.target_load, 3),
        "loadBand": own.load_band,
        "intervalMs": view.facts.trigger_ms,
        "maxLagMs": own.max_lag_ms,
        "catchUpMs": own.catch_up_ms,
    }


def _model(outlook: Outlook, shown: Plan, *, points: bool) -> dict[str, Any]:
    return {
        "fixedMs": round(outlook.fixed_ms, 1),
        "rowUs": round(outlook.row_us, 3),
        "confidence": round(outlook.confidence, 2),
        "points": _points(shown) if points else None,
    }


def _points(shown: Plan) -> list[dict[str, Any]]:
    return [{"rowsPerSlot": round(rows, 1), "durationMs": round(took)} for rows, took in shown.points]


def _backlog(outlook: Outlook) -> dict[str, Any] | None:
    if outlook.backlog is None:
        return None
    gone = outlook.gone_in_ms
    return {
        "rows": round(outlook.backlog),
        "withinMs": outlook.within_ms,
        "goneInMs": None if gone is None else round(gone),
    }


# Reading and writing bounds as a body in Flink's form:
# {"shuffle": {"parallelism": {"lowerBound": 1, "upperBound": 8}}}
# In addition to the two there may be a `target`, which Flink does not have.


_LARGEST = 2**31 - 1
_TARGET = "target"


def read_body(body: object) -> Mapping[str, WantedBounds] | Refused:
    """Read a body in Flink's form, as parsed from JSON. The values are not checked: see `declare`."""
    problems: list[Problem] = []
    wanted: dict[str, WantedBounds] = {}
    vertices = _object("$", body, problems)
    if vertices == {}:
        message = '$ is {}, allowed is one entry for each vertex: write {"shuffle": {"parallelism": …}}'
        problems.append(Problem(code="empty_body", where="$", message=message))
    for vertex, value in (vertices or {}).items():
        entry_path = _member("$", vertex)
        entry = _object(entry_path, value, problems, "parallelism")
        if entry is None or "parallelism" not in entry:
            continue
        path = _member(entry_path, "parallelism")
        bounds = _object(
            path, entry["parallelism"], problems, "lowerBound", "upperBound", optional=(_TARGET,)
        )
        if bounds is None:
            continue
        wanted[vertex] = WantedBounds(
            lower=_whole(_member(path, "lowerBound"), bounds.get("lowerBound", NO_BOUND), problems),
            upper=_whole(_member(path, "upperBound"), bounds.get("upperBound", NO_BOUND), problems),
            target=_whole(_member(path, _TARGET), bounds[_TARGET], problems) if _TARGET in bounds else None,
        )
    return Refused(problems=tuple(problems)) if problems else wanted


def write_body(vertices: Mapping[str, Bounds | WantedBounds]) -> dict[str, Any]:
    """Write bounds as a body in Flink's form; `read_body` reads it back."""
    return {vertex: {"parallelism": _parallelism(bounds)} for vertex, bounds in vertices.items()}


def _parallelism(bounds: Bounds | WantedBounds) -> dict[str, int]:
    both = {"lowerBound": bounds.lower, "upperBound": bounds.upper}
    return both if bounds.target is None else {**both, _TARGET: bounds.target}


def _object(
    path: str, value: object, problems: list[Problem], *fields: str, optional: tuple[str, ...] = ()
) -> Mapping[str, Any] | None:
    """Return `value` if it is an object; `fields` must be in it, and other names must be `optional`."""
    if not isinstance(value, Mapping):
        message = f"{path} is {_shown(value)}, allowed is an object: write {{…}}"
        problems.append(Problem(code="wrong_type", where=path, message=message))
        return None
    for name in value if fields else ():
        if name not in (*fields, *optional):
            where = _member(path, name)
            message = f"{where} is no field, allowed is {_listed(*fields, *optional)}: remove it"
            problems.append(Problem(code="unknown_field", where=where, message=message))
    for name in fields:
        if name not in value:
            where = _member(path, name)
            wanted = '{"lowerBound": -1, "upperBound": -1}' if name == "parallelism" else "-1"
            message = f'{where} is not there, but has to be: write "{name}": {wanted} for no bound'
            problems.append(Problem(code="missing_field", where=where, message=message))
    return value


def _listed(*names: str) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _whole(path: str, value: object, problems: list[Problem]) -> int:
    """Return `value` if it is a whole number of 32 bits; True and False are not."""
    if type(value) is int and -_LARGEST <= value <= _LARGEST:
        return value
    message = f"{path} is {_shown(value)}, allowed is {ALLOWED}: write -1"
    problems.append(Problem(code="wrong_type", where=path, message=message))
    return NO_BOUND


def _member(path: str, name: str) -> str:
    """Return the JSON path of a member of the object at `path`."""
    if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        return f"{path}.{name}"
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"{path}['{escaped}']"


def _shown(value: object) -> str:
    """Return a value in the terms of JSON, shortened."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return "an array"
    if type(value) is int and abs(value) > _LARGEST:
        return "a number of more than 32 bits"
    return shortened(value) if isinstance(value, str) else str(value)


Json = dict[str, Any]


def overview(view: View) -> Json:
    """Return the application at a glance."""
    states: dict[str, int] = {}
    for query in view.queries.values():
        states[query.state] = states.get(query.state, 0) + 1
    return {
        "application": {"id": view.application, "name": view.application_name},
        "version": __version__,
        "sparkVersion": view.spark_version,
        "at": view.at,
        "mode": view.settings[rescaling.MODE],
        "adviseOnly": view.settings[application.ADVISE_ONLY],
        "readOnly": view.settings[application.REST_READ_ONLY],
        "ended": False,
        "maxParallelism": view.settings[rescaling.MAX_PARALLELISM],
        "policyRestarts": view.restarts,
        "slots": {"now": view.slots, "desired": desired_slots(view)},
        "executors": [
            {
                "id": executor.executor,
                "host": executor.host,
                "cores": executor.cores,
                "slots": view.usable.get(executor.executor, 0),
                "excluded": executor.excluded,
                "exclusion": view.exclusions.get(executor.executor),
                "decommissioning": executor.decommissioning,
            }
            for executor in view.executors
        ],
        "queries": states,
        "customPolicies": [custom_policy(name, metrics) for name, metrics in view.custom_policies.items()],
        "parts": [
            {"name": name, "on": not reason, "reason": reason or None} for name, reason in view.parts.items()
        ],
        "lacks": [
            {"what": lack.what, "why": lack.why, "instead": lack.instead, "since": lack.since}
            for lack in lacks_of(
                Spark(view.spark_version), off={name for name, reason in view.parts.items() if reason}
            )
        ],
    }


def custom_policy(name: str, metrics: CustomMetrics) -> Json:
    """Return a custom policy, with its error if it is failing."""
    failing = metrics.failing
    return {
        "name": name,
        "answers": metrics.answers,
        "failures": metrics.failures,
        "error": None if failing is None else failing.error,
        "since": None if failing is None else failing.since,
        "retryAt": None if failing is None else failing.retry_at,
    }


def desired_slots(view: View) -> int | None:
    """Return the total slots wanted by the groups of live queries; None if one wants all slots."""
    live = (query.requirements for query in view.queries.values() if query.state != FINISHED)
    wants = [group.wanted for group in joined_groups(live).values()]
    maximum = view.settings[rescaling.MAX_PARALLELISM]
    return None if any(slots >= maximum for slots in wants) else sum(wants)


def query(view: QueryView, *, points: bool = False) -> Json:
    """Return one query; `points` adds the micro-batches that its policy uses, which are many."""
    facts = view.facts
    return {
        "id": facts.query,
        "name": facts.name,
        "run": view.run,
        "state": view.state,
        "stateful": facts.stateful,
        "trigger": facts.trigger,
        "triggerMs": facts.trigger_ms,
        "partitions": view.partitions,
        "target": view.target,
        "requirements": requirements(view.declared),
        "vertexIds": vertex_ids(facts.query, (vertex.id for vertex in view.declared.vertices)),
        "boundBy": view.declared.bound_by,
        "slots": view.share.slots,
        "grantedSlots": view.granted_slots,
        "neededSlots": view.declared.needed,
        "priority": view.declared.priority,
        "weight": view.declared.shuffle.weight,
        "slotSharingGroups": {vertex.id: vertex.group for vertex in view.declared.vertices},
        "mode": view.settings.mode,
        "settings": view.own_settings,
        "restarts": view.restarted,
        "rescales": view.rescaled,
        "sources": [source.name for source in facts.sources],
        "lastBatch": None if view.last_progress is None else _batch(view.last_progress),
        "policy": plan(view, points=points),
        "lastDecision": None if view.last_decision is None else decision(view.last_decision),
    }


def _batch(progress: QueryProgress) -> Json:
    behind = progress.offsets_behind
    return {
        "batch": progress.batch,
        "started": progress.started,
        "durationMs": progress.duration_ms,
        "partitions": progress.partitions,
        "inputRows": progress.input_rows,
        "inputRowsPerSecond": progress.input_rows_per_second,
        "processedRowsPerSecond": progress.processed_rows_per_second,
        "stateRows": progress.state_rows,
        "stateBytes": progress.state_bytes,
        "offsetsBehind": None
        if behind is None
        else {"avg": behind.avg, "max": behind.max, "min": behind.min},
        "sources": [
            {"vertex": source_vertex(number), "inputRows": source.rows, "tasks": source.tasks}
            for number, source in enumerate(progress.sources)
        ],
    }


def requirements(value: Requirements) -> Json:
    """Return bounds as a body that PUT accepts."""
    return write_body({vertex.id: vertex.bounds for vertex in value.vertices})


def etag(value: Requirements) -> str:
    """Return the entity tag of bounds: equal for equal bounds."""
    return f'"{hashlib.sha256(as_json(requirements(value)).encode()).hexdigest()[:16]}"'


def savepoint(taken: Savepoint) -> Json:
    """Return a savepoint."""
    return {"at": taken.at, "path": taken.path, "batch": taken.batch, "bytes": taken.bytes}


def rescale(record: RescaleRecord) -> Json:
    """Return one rescale."""
    return {
        "number": record.number,
        "requirements": record.requirements,
        "attempt": record.attempt,
        "cause": record.cause,
        "status": record.status,
        "reason": record.reason,
        "started": record.started,
        "ended": record.ended,
        "slotsBefore": record.slots_before,
        "slotsAfter": record.slots_after,
        "partitionsBefore": record.partitions_before,
        "partitionsAfter": record.partitions_after,
        "pausedMs": record.paused_ms,
        "executorsUsed": record.executors_used,
        "warmUpMs": record.warm_up_ms,
        "states": [
            {"state": stay.state, "entered": stay.entered, "left": stay.left} for stay in record.stays
        ],
    }


def exception(failure: RunFailure) -> Json:
    """Return one failure of a run."""
    return {
        "at": failure.at,
        "error": failure.failure.error,
        "summary": summary(failure.failure.error),
        "errorClass": failure.failure.error_class,
        "causes": list(failure.failure.causes),
        "offsets": failure.failure.offsets,
        "reason": failure.reason,
    }


def decision(value: Decision) -> Json:
    """Return one decision with everything that led to it."""
    return {
        "number": value.number,
        "query": value.query,
        "name": value.name,
        "at": value.at,
        "kind": value.kind,
        "reason": value.reason,
        "message": value.message,
        "cause": value.cause,
        "before": value.before,
        "after": value.after,
        "numbers": dict(value.numbers),
        "alternatives": list(value.alternatives),
        "until": value.until,
    }


def timeline(series: Timeline, query: str, after: int) -> Json:
    """Return the series of a query's chart after `after` (epoch ms)."""
    return {
        "batches": [
            {
                "at": batch.at,
                "durationMs": batch.duration_ms,
                "partitions": batch.partitions,
                "inputRowsPerSecond": batch.input_rows_per_second,
            }
            for batch in series.batches(query, after)
        ],
        "slots": [{"at": at, "slots": slots} for at, slots in series.slots(after)],
        "lost": [
            {"at": one.at, "executor": one.executor, "reason": one.reason, "released": one.released}
            for one in series.lost(after)
        ],
    }


def stages(decided: Sequence[DecidedStage], before: int = LARGEST, most: int | None = None) -> Json:
    """Return the decisions about batch stages with numbers below `before`; `decided` has the newest first."""
    shown = islice((one for one in decided if one.number < before), most)
    unanswered = decided[0].stage["unanswered"] if decided else 0
    return {"stages": [stage(one) for one in shown], "unanswered": unanswered}


def stage(decided: DecidedStage) -> Json:
    """Return one decision about a batch stage."""
    stage = decided.stage
    question = stage["question"]
    return {
        "number": decided.number,
        "at": stage["at"],
        "group": question["scan"] if "scan" in question else question["group"],
        "question": question["type"],
        "tookUs": stage["took_us"],
        **stage["answer"]["record"],
        "sizes": None if decided.sizes is None else _sizes(decided.sizes),
    }


def _sizes(sizes: Sizes) -> Json:
    return {
        "of": "tasks" if sizes.of_tasks else "partitions",
        "count": sizes.count,
        "total": sizes.total,
        "smallest": sizes.smallest,
        "median": sizes.median,
        "largest": sizes.largest,
        "buckets": list(sizes.buckets),
    }
