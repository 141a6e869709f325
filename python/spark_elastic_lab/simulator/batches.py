"""Simulated batch jobs: stages of equal tasks, one after another, next to the queries' micro-batches."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from attrs import define, field, frozen
from attrs.validators import and_, ge, gt, le, min_len, optional

from spark_elastic.core.events import BatchStage, BatchStages
from spark_elastic_lab.simulator.cluster import Clock
from spark_elastic_lab.simulator.record import BatchRun
from spark_elastic_lab.simulator.sharing import SharedSlots

_LOOK_MS = 1_000
"""Interval (ms) at which the shim reports batch stages."""

Tell = Callable[..., None]


@frozen(kw_only=True)
class BatchSpec:
    """Jobs of one kind: the first arrives at `at_s` (s), then one every `every_s` (s), or no more if 0.

    Each job has `stages` stages of `tasks` tasks, and each task takes `task_s` (s). Raises ValueError for
    invalid values.
    """

    name: str = field(validator=min_len(1))
    at_s: float = field(default=0.0, validator=ge(0))
    every_s: float = field(default=0.0, validator=ge(0))
    stages: int = field(default=1, validator=ge(1))
    tasks: int = field(default=200, validator=ge(1))
    task_s: float = field(default=1.0, validator=gt(0))

    def arrivals(self, end_ms: int) -> list[int]:
        """Return the arrival times of its jobs before the end (ms)."""
        first, step = round(self.at_s * 1_000), round(self.every_s * 1_000)
        if first >= end_ms:
            return []
        return list(range(first, end_ms, step)) if step else [first]

    def stage_ms(self, slots: float) -> float:
        """Return the time (ms) of one stage on this number of slots; at least one slot means whole waves."""
        waves = self.tasks / slots if slots < 1 else math.ceil(self.tasks / int(slots))
        return waves * self.task_s * 1_000


@define
class _Job:
    """A running job: `left` counts its remaining stages, the current one included; `stage` is its id."""

    spec: BatchSpec
    came: int
    left: int
    stage: int
    began: int


@define(kw_only=True)
class SimulatedBatch:
    """The batch jobs of one simulation, which began at `epoch` (epoch ms).

    `running` holds the current jobs, by the name under which they share the slots.
    """

    specs: tuple[BatchSpec, ...]
    clock: Clock
    slots: SharedSlots
    tell: Tell
    notes: list[BatchRun]
    epoch: int
    running: dict[str, _Job] = field(factory=dict)
    _jobs: int = 0
    _stages: int = 0
    _over: int = 0
    _told: bool = False

    def begin(self, end_ms: int) -> None:
        """Schedule all jobs up to the end."""
        for spec in self.specs:
            for at in spec.arrivals(end_ms):
                self.clock.at(at, partial(self._come, spec))

    def _come(self, spec: BatchSpec) -> None:
        self._jobs += 1
        name = f"batch {spec.name} {self._jobs}"
        self.running[name] = _Job(spec, self.clock.now, spec.stages, 0, 0)
        self._next(name)
        if not self._told:
            self._told = True
            self.clock.after(_LOOK_MS, self._look)

    def _next(self, name: str) -> None:
        job = self.running[name]
        self._stages += 1
        job.stage, job.began = self._stages, self.clock.now
        self.slots.begin(name, job.spec.tasks, lambda slots, shared: job.spec.stage_ms(slots), self.clock.now)

    def through(self, name: str) -> None:
        """End the running stage; the next one starts at once."""
        job = self.running[name]
        self.slots.end(name, self.clock.now)
        self._over += 1
        job.left -= 1
        if job.left:
            self._next(name)
        else:
            del self.running[name]
            self.notes.append(BatchRun(job.came, self.clock.now))

    def progress(self, name: str) -> tuple[int, int, float]:
        """Return the tasks of a running stage, its unfinished tasks, and its slots."""
        tasks, batch = self.running[name].spec.tasks, self.slots.running[name]
        return tasks, tasks - int(tasks * batch.done_by(self.clock.now) + 1e-9), batch.slots

    def _look(self) -> None:
        """Report the stages as the shim does; once more after the last has ended."""
        self._told = bool(self.running)
        shown = tuple(self._shown(name) for name in self.running)
        over, self._over = self._over, 0
        self.tell(BatchStages, stages=shown, over=over)
        if self._told:
            self.clock.after(_LOOK_MS, self._look)

    def _shown(self, name: str) -> BatchStage:
        job = self.running[name]
        tasks, left, slots = self.progress(name)
        return BatchStage(
            stage=job.stage,
            tasks=tasks,
            done=tasks - left,
            running=min(left, int(slots)),
            run_ms=round((tasks - left) * job.spec.task_s * 1_000),
            launched=self.epoch + job.began if slots > 0 else None,
        )


# The duration of a micro-batch: a + b · rows ÷ slots + a part for each partition.
# A query reads its source in one stage, with a task for each source partition, and does its work in a second
# stage, with a task for each shuffle partition. A stage runs in waves over its slots. The last wave may leave
# slots empty, unless others share and fill them. A stage takes at least as long as its largest task.
# The rest (planning, offsets, commit) takes the same time with any number of slots.


@frozen(kw_only=True)
class BatchCost:
    """The cost of one query's micro-batches.

    `fixed_ms` is the cost of each batch, `task_ms` of each task without rows; those of the first stage cost
    `read_task_ms` instead, unless that is None. A task of the first stage also takes `read_write_us` for each
    partition of the shuffle that it writes, and one of the second stage `work_write_us`, if it writes another
    one. `read_us` and `work_us` are the costs of a row in one slot, in the first and the second stage;
    without `work_us` there is no second stage. `hot_key` is the share of rows with the same key, and so in
    one task. `jitter` is the standard deviation of the logarithm of the durations, as measured: 0.1 is 10 %.
    Raises ValueError for negative numbers.
    """

    fixed_ms: float = field(default=300.0, validator=ge(0))
    task_ms: float = field(default=20.0, validator=ge(0))
    read_task_ms: float | None = field(default=None, validator=optional(ge(0)))
    read_write_us: float = field(default=0.0, validator=ge(0))
    work_write_us: float = field(default=0.0, validator=ge(0))
    read_us: float = field(default=20.0, validator=ge(0))
    work_us: float = field(default=80.0, validator=ge(0))
    hot_key: float = field(default=0.0, validator=and_(ge(0), le(1)))
    jitter: float = field(default=0.05, validator=and_(ge(0), le(2)))

    @property
    def has_shuffle(self) -> bool:
        """Whether there is a second stage."""
        return self.work_us > 0

    def work_ms(self, rows: int, tasks: int, slots: float, shared: bool = False) -> float:
        """Estimate the second stage (ms)."""
        if not self.has_shuffle:
            return 0.0
        task_ms = self.task_ms + tasks * self.work_write_us / 1_000
        return _stage_ms(task_ms, rows * self.work_us / 1_000, tasks, self.hot_key, slots, shared)

    def batch_ms(
        self, rows: int, sources: int, largest: float, partitions: int, slots: float, shared: bool = False
    ) -> float:
        """Estimate a whole micro-batch (ms) without jitter, on more than 0 slots, which may be `shared`.

        `largest` is the share of the largest of its `sources`, the partitions that it reads.
        """
        task_ms = self.task_ms if self.read_task_ms is None else self.read_task_ms
        task_ms += partitions * self.read_write_us / 1_000
        read = _stage_ms(task_ms, rows * self.read_us / 1_000, sources, largest, slots, shared)
        return self.fixed_ms + read + self.work_ms(rows, partitions, slots, shared)


def _stage_ms(
    task_ms: float, work_ms: float, tasks: int, largest: float, slots: float, shared: bool
) -> float:
    # Less than one slot means a slot shared in time.
    waves = max(1.0, tasks / slots) if shared or slots < 1 else -(-tasks // int(slots))
    even = waves * (task_ms + work_ms / tasks)
    hot = (task_ms + work_ms * largest) / min(1.0, slots)
    return max(even, hot)
