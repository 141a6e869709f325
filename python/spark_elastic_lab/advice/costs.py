"""The cost of a query's micro-batches, from their tasks, so that other numbers of partitions and slots can be
simulated.

A task takes a fixed time and a time for each row that it reads. Tasks of the same stage read different
numbers of rows, and many shuffle partitions are empty, so that both can be told apart even in a run that has
always had the same partitions and slots, as that of plain Spark.

A task that writes a shuffle opens a stream for each partition that it has rows for. A log has their number,
but not what they cost: that is assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from attrs import evolve, frozen

from spark_elastic.core.rescale.gain import OVERHEAD_MS
from spark_elastic_lab.advice.told import Line, MicroBatch, Work
from spark_elastic_lab.simulator.batches import BatchCost
from spark_elastic_lab.simulator.query import QuerySpec

_COLD = 3
"""The first micro-batches of a run load classes and compile code: they cost more than all that follow."""
FEWEST = 8
"""With fewer warm micro-batches a cost is no more than a guess."""
_STREAM_MS = 0.6
"""What a task takes to write to one more partition (ms): measured 0.25 to 0.85 ms on two cores."""
_NEW_STORE = OVERHEAD_MS["rocksdb"] / OVERHEAD_MS["hdfs"]
"""How much longer a task without rows takes with its state in RocksDB."""
_DEVIATIONS = 1.4826
_MOST_JITTER = 1.0


@frozen(kw_only=True)
class Measured:
    """The `cost` of recorded micro-batches, that with the plugin, and how well the first explains them.

    With the plugin, a shuffle has as many partitions as it is planned with, and new state is in RocksDB.
    `error` is the median of the relative errors of their durations. `batches` counts them, `read_tasks` is
    the number of tasks that read the sources.
    """

    cost: BatchCost
    with_plugin: BatchCost
    error: float
    batches: int
    read_tasks: int


def warm(batches: Sequence[MicroBatch]) -> list[MicroBatch]:
    """Return the micro-batches with tasks, without the first ones of each run."""
    begun: dict[str, int] = {}
    found = []
    for one in batches:
        begun[one.run] = begun.get(one.run, 0) + 1
        if begun[one.run] > _COLD and one.rows and (one.read.tasks or one.work.tasks):
            found.append(one)
    return found


def measure(batches: Sequence[MicroBatch], spec: QuerySpec, *, new_store: bool = False) -> Measured | None:
    """Measure the cost of micro-batches of a query like `spec`; None if there are too few.

    With the plugin its state is in a `new_store`, if it was in Spark's own.
    """
    found = [one for one in warm(batches) if one.steady and one.slots]
    if len(found) < FEWEST:
        return None
    read_ms, read_us, _ = _parts([one.read for one in found], found)
    work_ms, work_us, stages = _parts([one.work for one in found], found)
    shuffles = any(one.work.tasks for one in found)
    read_tasks = max(1, round(median(one.read.tasks for one in found)))
    cost = BatchCost(
        fixed_ms=0,
        task_ms=work_ms * stages if shuffles else read_ms,
        read_task_ms=read_ms,
        read_us=read_us,
        # A shuffle without measurable work still is a stage.
        work_us=max(work_us, 1e-6) if shuffles else 0,
        jitter=0,
    )
    spec = evolve(spec, cost=cost, source=evolve(spec.source, partitions=read_tasks))
    tasks_ms = [_batch_ms(spec, one) for one in found]
    # Stages of a join run at the same time: then less is outside of them than their sum leaves.
    outside = median(one.took_ms - one.read.wall_ms - one.work.wall_ms for one in found)
    rest = median(one.took_ms - ms for one, ms in zip(found, tasks_ms, strict=True))
    fixed = max(0.0, outside, rest)
    off = [abs(one.took_ms / max(1.0, fixed + ms) - 1) for one, ms in zip(found, tasks_ms, strict=True)]
    jitter = min(_MOST_JITTER, _DEVIATIONS * median(off))
    cost = evolve(cost, fixed_ms=fixed, jitter=jitter)
    return Measured(
        cost=cost,
        with_plugin=_with_plugin(cost, found, stages, new_store),
        error=median(off),
        batches=len(found),
        read_tasks=read_tasks,
    )


def _batch_ms(spec: QuerySpec, batch: MicroBatch) -> float:
    return spec.batch_ms(batch.rows, max(1, batch.partitions or 1), max(1, batch.slots))


def _parts(works: Sequence[Work], batches: Sequence[MicroBatch]) -> tuple[float, float, float]:
    """Return the time of a task (ms), that of a row of the source (µs), and the stages per batch."""
    line = Line()
    for work in works:
        line.join(work.line)
    if not line.count:
        return 0.0, 0.0, 1.0
    row_ms = line.slope()
    task_ms = max(0.0, (line.y - row_ms * line.x) / line.count)
    rows = sum(batch.rows for batch in batches)
    stages = max(1.0, _mean(work.stages for work in works if work.stages))
    return task_ms + _between_ms(works, batches), row_ms * line.x / max(1, rows) * 1_000, stages


def _with_plugin(cost: BatchCost, batches: Sequence[MicroBatch], stages: float, new_store: bool) -> BatchCost:
    reads, works = [one.read for one in batches], [one.work for one in batches]
    written = median(one.written for one in batches)
    streams = sum(work.blocks for work in reads + works)
    stream_ms = _STREAM_MS * streams / max(1, sum(work.writers for work in reads + works))
    read_ms = cost.read_task_ms or 0.0
    from_reads = min(stream_ms, read_ms) if any(work.writers for work in reads) else 0.0
    from_works = min(stream_ms * stages, cost.task_ms) if any(work.writers for work in works) else 0.0
    return evolve(
        cost,
        read_task_ms=read_ms - from_reads,
        read_write_us=from_reads / written * 1_000,
        task_ms=(cost.task_ms - from_works) * (_NEW_STORE if new_store else 1),
        work_write_us=from_works / written * 1_000,
    )


def _between_ms(works: Sequence[Work], batches: Sequence[MicroBatch]) -> float:
    """Return the time for which a slot waits between two tasks (ms), if stages ran in several waves."""
    waits = [
        (work.wall_ms * batch.slots - work.task_ms) / work.tasks
        for work, batch in zip(works, batches, strict=True)
        if work.stages and work.tasks / work.stages >= 4 * batch.slots
    ]
    return max(0.0, median(waits)) if waits else 0.0


def _mean(numbers: Iterable[float]) -> float:
    found = list(numbers)
    return sum(found) / len(found) if found else 0.0
