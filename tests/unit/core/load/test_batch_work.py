"""Tests of the remaining work of batch stages, estimated from the best known facts of each."""

from __future__ import annotations

import pytest

from spark_elastic.core.events import BatchStage
from spark_elastic.core.policies.batch_memory import StagePace

NOW = 1_000_000


def stage(tasks: int = 100, **fields: int | None) -> BatchStage:
    return BatchStage(stage=1, tasks=tasks, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "work_ms"),
    [
        # its own bytes: reading them took 10 ms each
        (stage(done=50, run_ms=10_000, bytes=1_500, read_bytes=1_000), 5_000.0),
        # its own tasks
        (stage(done=20, run_ms=10_000, bytes=None, read_bytes=1_000), 40_000.0),
        (stage(done=20, run_ms=10_000), 40_000.0),
        # the waiting bytes, at the pace of other stages: 2 ms each
        (stage(bytes=30_000), 60_000.0),
        # the tasks of other stages: 40 ms each
        (stage(), 4_000.0),
        # at least the time that its first tasks have run so far
        (stage(running=4, launched=NOW - 3_000), 300_000.0),
        (stage(running=4, launched=NOW - 3_000, bytes=1_000_000), 2_000_000.0),
        (stage(done=100, run_ms=10_000, bytes=1_500, read_bytes=1_000), 0.0),
    ],
)
def test_the_nearest_measurement_counts(one: BatchStage, work_ms: float) -> None:
    before = stage(done=50, run_ms=2_000, bytes=1_000, read_bytes=1_000)
    assert StagePace.of([before]).work_ms(one, NOW) == pytest.approx(work_ms)


def test_what_nobody_knows_is_no_work() -> None:
    assert StagePace.of([]) == StagePace()
    assert StagePace().work_ms(stage(bytes=10), NOW) == 0.0


def test_the_pace_is_that_of_all_tasks_that_are_done() -> None:
    pace = StagePace.of(
        [stage(done=10, run_ms=100, written_bytes=50), stage(done=30, run_ms=300, read_bytes=100)]
    )
    assert (pace.task_ms, pace.written_ms, pace.read_ms) == (10.0, 2.0, 3.0)
