"""The JSON of the API. All times are epoch ms, names that end in `Ms` are durations."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import islice
from typing import Any

from spark_elastic import __version__
from spark_elastic.core.actions import Decision
from spark_elastic.core.bounds.requirements import Requirements, joined_groups, source_vertex
from spark_elastic.core.events import QueryProgress
from spark_elastic.core.failures.judge import summary
from spark_elastic.core.keys import application, rescaling
from spark_elastic.core.policies.custom import CustomMetrics
from spark_elastic.core.query.record import RunFailure, Savepoint
from spark_elastic.core.query.transitions import FINISHED
from spark_elastic.core.query.view import QueryView
from spark_elastic.core.rescale.history import RescaleRecord
from spark_elastic.installation import Spark
from spark_elastic.lacks import lacks_of
from spark_elastic.rest.bounds_body import write_body
from spark_elastic.rest.errors import as_json
from spark_elastic.rest.parameters import LARGEST
from spark_elastic.rest.plans import plan
from spark_elastic.rest.vertex_ids import vertex_ids
from spark_elastic.runtime.decided_stages import DecidedStage, Sizes
from spark_elastic.runtime.timeline import Timeline
from spark_elastic.runtime.view import View

Json = dict[str, Any]


def overview(view: View) -> Json:
    """Show the application at a glance."""
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
    """Show a custom policy, and why it has no answer if that is so."""
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
    """Add up what the slot-sharing groups of the queries that live want; None if one wants all there are."""
    live = (query.requirements for query in view.queries.values() if query.state != FINISHED)
    wants = [group.wanted for group in joined_groups(live).values()]
    maximum = view.settings[rescaling.MAX_PARALLELISM]
    return None if any(slots >= maximum for slots in wants) else sum(wants)


def query(view: QueryView, *, points: bool = False) -> Json:
    """Show one query; the micro-batches that its policy goes by only with `points`, since they are many."""
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
    """Show bounds as a body that PUT takes back."""
    return write_body({vertex.id: vertex.bounds for vertex in value.vertices})


def etag(value: Requirements) -> str:
    """Return the entity tag of bounds: equal for equal bounds."""
    return f'"{hashlib.sha256(as_json(requirements(value)).encode()).hexdigest()[:16]}"'


def savepoint(taken: Savepoint) -> Json:
    """Show a savepoint."""
    return {"at": taken.at, "path": taken.path, "batch": taken.batch, "bytes": taken.bytes}


def rescale(record: RescaleRecord) -> Json:
    """Show one rescale."""
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
    """Show one failure of a run."""
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
    """Show one decision with all that led to it."""
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
    """Show the series of a query's chart from a time on."""
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
            {"at": at, "executor": executor, "reason": reason} for at, executor, reason in series.lost(after)
        ],
    }


def stages(decided: Sequence[DecidedStage], before: int = LARGEST, most: int | None = None) -> Json:
    """Show the decisions about batch stages below a number, `decided` having the newest first."""
    shown = islice((one for one in decided if one.number < before), most)
    unanswered = decided[0].stage["unanswered"] if decided else 0
    return {"stages": [stage(one) for one in shown], "unanswered": unanswered}


def stage(decided: DecidedStage) -> Json:
    """Show one decision about a batch stage."""
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
