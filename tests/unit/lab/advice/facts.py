"""Micro-batches and stages whose numbers are easy to compute by hand, and the logs of real runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spark_elastic_lab.advice.stages import StagesSeen
from spark_elastic_lab.advice.told import Line, MicroBatch, StageFacts, Told, Work
from spark_elastic_tools.event_logs.files import find_logs

RECORDED = Path(__file__).parent / "recorded"
"""Logs of real runs, written by `python -m integration.advice.record`."""


def told_of(name: str) -> tuple[Told, StagesSeen]:
    """Read a recorded log."""
    stages = StagesSeen()
    told = Told(on_stage=stages.add)
    (log,) = find_logs(RECORDED / f"{name}.gz")
    told.read(log.events(Told.wants))
    return told, stages


def line_of(*points: tuple[float, float]) -> Line:
    line = Line()
    for x, y in points:
        line.add(x, y)
    return line


def work(tasks: dict[int, int], wall_ms: int, stages: int = 1) -> Work:
    """Return the work of tasks, given as rows read and how many tasks read that many; each takes 10 ms and
    0.1 ms for each row.
    """
    points = [(float(rows), 10 + rows / 10) for rows, count in tasks.items() for _ in range(count)]
    return Work(
        stages=stages,
        tasks=len(points),
        task_ms=round(sum(ms for _, ms in points)),
        wall_ms=wall_ms,
        empty=tasks.get(0, 0),
        rows=round(sum(rows for rows, _ in points)),
        longest_ms=round(max(ms for _, ms in points)),
        line=line_of(*points),
    )


def batch(started: int, took_ms: int = 1_000, **fields: Any) -> MicroBatch:
    return MicroBatch(
        **{
            "run": "r1",
            "batch": 1,
            "started": started,
            "took_ms": took_ms,
            "reported": started + took_ms,
            "rows": 1_000,
            "partitions": 8,
            "written": 8,
            "state_rows": 0,
            "state_bytes": 0,
            "behind": None,
            "read": Work(),
            "work": Work(),
            "slots": 2,
            "steady": True,
            **fields,
        }
    )


def stage(sizes: tuple[int, ...], **fields: Any) -> StageFacts:
    """Return a stage on 4 slots whose tasks run for 100 ms each, and take 10 ms more."""
    tasks = len(sizes)
    return StageFacts(
        **{
            "stage": 1,
            "name": "save at app.py:1",
            "query": None,
            "batch": None,
            "execution": 0,
            "submitted": 0,
            "completed": -(-tasks // 4) * 110,
            "tasks": tasks,
            "failed": 0,
            "task_ms": 110 * tasks,
            "run_ms": 100 * tasks,
            "longest_ms": 110,
            "median_ms": 110.0,
            "gc_ms": 0,
            "spilled_bytes": 0,
            "input_bytes": 0,
            "written_bytes": 0,
            "rows": 100,
            "empty": 0,
            "sizes": sizes,
            "line": Line(),
            "writers": 0,
            "blocks": 0,
            "slots": 4,
            "conf": {},
            **fields,
        }
    )
