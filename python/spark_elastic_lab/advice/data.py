"""Advice as data for JSON. The fields are described in docs/advise.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from spark_elastic_lab.advice.advice import Advice
from spark_elastic_lab.advice.queries import QueryReport
from spark_elastic_lab.advice.stages import StageReport
from spark_elastic_lab.advice.text import defaults
from spark_elastic_lab.advice.what_if import WhatIf

Data = dict[str, Any]


def as_data(advice: Advice, lines: Mapping[str, str] | None) -> Data:
    """Return the whole advice; `lines` are the settings that turn the plugin on, None if unknown."""
    batch = advice.batch
    return {
        "log": advice.log,
        "application": advice.application,
        "name": advice.name,
        "sparkVersion": advice.spark,
        "ended": advice.ended,
        "hours": advice.hours,
        "executors": _range(advice.executors),
        "slots": _range(advice.slots),
        "executorHours": advice.executor_hours,
        "coreHours": advice.core_hours,
        "cost": _cost(advice.core_hours, advice.price),
        "busy": advice.busy,
        "lostExecutors": advice.lost_executors,
        "queries": [_query(query) for query in advice.queries],
        "batch": {
            "executions": batch.executions,
            "stages": batch.stages,
            "shuffleStages": batch.shuffles,
            "wallMs": batch.wall_ms,
            "lostMs": batch.lost_ms,
            "failedTasks": batch.failed_tasks,
            "worst": [_stage(stage, batch.texts) for stage in batch.worst],
        },
        "whatIf": None if advice.what_if is None else _what_if(advice.what_if, advice.price),
        "whyNoWhatIf": advice.why_not,
        "proposal": {
            "mode": advice.proposal.mode,
            "why": advice.proposal.why,
            "notes": list(advice.proposal.notes),
            "settings": defaults(advice, lines),
            "policyFile": advice.proposal.policy_file,
        },
        "unsure": list(advice.unsure),
    }


def _range(numbers: tuple[int, int, int]) -> Data:
    return dict(zip(("fewest", "usual", "most"), numbers, strict=True))


def _cost(core_hours: float, price: float | None) -> float | None:
    return None if price is None else core_hours * price


def _query(query: QueryReport) -> Data:
    return {
        "id": query.query,
        "name": query.name,
        "stateful": query.stateful,
        "store": query.store,
        "sources": list(query.sources),
        "batches": query.batches,
        "rows": query.rows,
        "triggerMs": None if query.trigger.known == "unknown" else query.trigger.interval_ms,
        "triggerKnown": query.trigger.known,
        "medianMs": query.median_ms,
        "p95Ms": query.p95_ms,
        "longestMs": query.longest_ms,
        "triggers": query.triggers,
        "missedTriggers": query.missed,
        "partitions": query.partitions,
        "tasks": query.tasks,
        "emptyTasks": query.empty,
        "slots": _range(query.slots),
        "idleSlots": query.idle,
        "driverTime": query.driver,
        "stateRows": query.state_rows,
        "stateBytes": query.state_bytes,
        "stateRowsPerPartition": query.state_rows_per_partition,
        "stateBytesPerPartition": query.state_bytes_per_partition,
        "spilledBytes": query.spilled_bytes,
        "error": query.error,
        "findings": [attrs.asdict(finding) for finding in query.findings],
        "unsure": list(query.unsure),
    }


def _stage(stage: StageReport, texts: Mapping[int, str]) -> Data:
    return {
        "stage": stage.stage,
        "execution": stage.execution,
        "description": "" if stage.execution is None else texts.get(stage.execution, ""),
        "name": stage.name,
        "kinds": list(stage.kinds),
        "text": stage.text,
        "tasks": stage.tasks,
        "failedTasks": stage.failed,
        "slots": stage.slots,
        "wallMs": stage.wall_ms,
        "lostMs": stage.lost_ms,
        "longestTaskMs": stage.longest_ms,
        "medianTaskMs": stage.median_ms,
        "bytes": stage.bytes,
        "largestBytes": stage.largest,
        "spilledBytes": stage.spilled_bytes,
        "advisedPartitions": stage.partitions,
        "advisedTasks": stage.wanted,
    }


def _what_if(what: WhatIf, price: float | None) -> Data:
    return {
        "objectiveSeconds": what.objective_s,
        "costs": {
            name: {
                "fixedMs": one.cost.fixed_ms,
                "taskMs": one.cost.task_ms,
                "readTaskMs": one.cost.read_task_ms,
                "readUs": one.cost.read_us,
                "workUs": one.cost.work_us,
                "error": one.error,
                "batches": one.batches,
            }
            for name, one in what.costs.items()
        },
        "upperBounds": dict(what.bounds),
        "outcomes": [
            {
                "policy": one.policy,
                "executorHours": one.executor_hours,
                "coreHours": one.core_hours,
                "cost": _cost(one.core_hours, price),
                "outsidePercent": one.outside_percent,
                "largestLagSeconds": one.largest_lag_s,
                "rescales": one.rescales,
                "medianBatchMs": dict(one.batch_ms),
            }
            for one in what.outcomes
        ],
        "leftOut": list(what.left_out),
    }
