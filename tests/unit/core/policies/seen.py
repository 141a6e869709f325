"""Views with defaults, and queries whose micro-batches take as long as a line predicts."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from spark_elastic.core.bounds.requirements import SHUFFLE, Bounds, Requirements, Vertex
from spark_elastic.core.events import StageWork
from spark_elastic.core.policies.view import ClusterView, QueryMetrics, Sample
from spark_elastic.core.settings import CoreSettings
from tests.unit.core.builder import STATELESS

SETTINGS = CoreSettings(mode="adaptive", policy=("autoscale",), target_load=0.75)
NOW = 10_000_000


def bounds(lower: int = 1, upper: int = 64) -> Requirements:
    vertex = Vertex(id=SHUFFLE, group="q", bounds=Bounds(lower=lower, upper=upper))
    return Requirements(vertices=(vertex,), bound_by="the declared upper bound")


def sample(number: int = 0, **fields: Any) -> Sample:
    """Return the micro-batch with this number: one per second, of 1000 rows on 4 slots in 400 ms."""
    started = NOW - 1_000_000 + 1_000 * number
    usual: dict[str, Any] = {
        "duration_ms": 400, "gap_ms": 1_000, "input_rows": 1_000, "partitions": 4, "slots": 4,
        "started": started, "at": started + 400,
    }  # fmt: skip
    return Sample(**{**usual, **fields})


def batches(
    count: int, rows: int, slots: int, *, fixed: float = 100.0, row: float = 1.0, interval: int = 1_000,
    behind: int | None = None, grows: int = 0, **fields: Any,
) -> tuple[Sample, ...]:  # fmt: skip
    """Return micro-batches that take ``fixed + row · rows / slots``, one per interval or back to back."""
    took = round(fixed + row * rows / slots)
    gap = max(interval, took)
    found = []
    for number in range(count):
        started = NOW - gap * (count - number)
        waits = None if behind is None else behind + grows * number
        found.append(
            sample(duration_ms=took, gap_ms=gap, input_rows=rows, slots=slots, partitions=slots,
                   started=started, at=started + took, behind=waits, **fields)
        )  # fmt: skip
    return tuple(found)


def work(**fields: int) -> StageWork:
    """Return the work of a micro-batch's tasks: one second in all, of about the same size each."""
    usual = {"run_ms": 1_000, "gc_ms": 0, "spilled_bytes": 0, "longest_ms": 100, "median_ms": 100}
    return StageWork(**{**usual, **fields})


def query(samples: tuple[Sample, ...] = (), **fields: Any) -> QueryMetrics:
    """Return a stateless query with a trigger each second that has the slots of its last micro-batch."""
    facts = evolve(STATELESS, query="q", trigger_ms=fields.pop("interval", 1_000))
    slots = samples[-1].slots if samples else 4
    usual: dict[str, Any] = {
        "query": "q", "facts": facts, "settings": evolve(SETTINGS, **fields.pop("settings", {})),
        "requirements": bounds(), "slots": slots, "granted": slots, "partitions": slots, "samples": samples,
    }  # fmt: skip
    return QueryMetrics(**{**usual, **fields})


def view(*queries: QueryMetrics, at: int = NOW, **fields: Any) -> ClusterView:
    return ClusterView(at=at, mode="adaptive", slots=8, queries={one.query: one for one in queries}, **fields)
