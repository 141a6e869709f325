"""Views for tests of rivals: a query whose micro-batches are all alike."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from spark_elastic.core.bounds.requirements import SHUFFLE, Bounds, Requirements, Vertex
from spark_elastic.core.policies.view import ExecutorMetrics, QueryMetrics, Sample
from spark_elastic.core.settings import CoreSettings
from spark_elastic_lab.simulator.rivals.rival import TaskView
from tests.unit.core.builder import STATEFUL

FACTS = evolve(STATEFUL, query="q", trigger_ms=10_000)
REQUIREMENTS = Requirements(
    vertices=(Vertex(id=SHUFFLE, group="q", bounds=Bounds(lower=1, upper=64)),), bound_by="a test"
)


def sample(at: int, rows: int, duration_ms: int, **fields: Any) -> Sample:
    """A micro-batch that ends at a moment (ms); the one before began 10 s earlier."""
    usual = {"gap_ms": 10_000, "partitions": 4, "slots": 4, "behind": 0, "source_tasks": 0}
    started = at - duration_ms
    return Sample(
        **{**usual, "at": at, "started": started, "duration_ms": duration_ms, "input_rows": rows, **fields}
    )


def seen(*samples: Sample, slots: int = 4, **fields: Any) -> QueryMetrics:
    usual = {"query": "q", "facts": FACTS, "settings": CoreSettings(), "requirements": REQUIREMENTS}
    return QueryMetrics(**{**usual, "slots": slots, "partitions": slots, "samples": samples, **fields})


def view(at: int, *queries: QueryMetrics, executors: int = 1, slots_each: int = 4, **fields: Any) -> TaskView:
    there = tuple(
        ExecutorMetrics(executor=str(number), slots=slots_each, since=0) for number in range(executors)
    )
    return TaskView(
        **{
            "at": at,
            "mode": "reactive",
            "slots": executors * slots_each,
            "usual_slots": slots_each,
            "executors": there,
            "queries": {query.query: query for query in queries},
            **fields,
        }
    )
