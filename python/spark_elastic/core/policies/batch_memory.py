"""The policies' memory of batch stages, and of the last report about them."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, frozen

from spark_elastic.core.cluster.executors import BatchDemand
from spark_elastic.core.events import BatchStage, BatchStages
from spark_elastic.core.policies.custom import SPOKEN_OF_BATCH
from spark_elastic.core.policies.policy import BatchWish
from spark_elastic.core.policies.view import BatchMetrics
from spark_elastic.core.reasons import catalogue
from spark_elastic.core.rescale.situation import HORIZON_MS
from spark_elastic.core.turn import Number, Turn

# ---- The work left in batch stages: estimated from their own bytes if these are known, else from their
# tasks.


@frozen(kw_only=True)
class StagePace:
    """The cost of batch stages so far, in ms of one slot; None until it is measured.

    `read_ms` is the cost per byte read from shuffles, `written_ms` per byte written to them, `task_ms` per
    task.
    """

    read_ms: float | None = None
    written_ms: float | None = None
    task_ms: float | None = None

    @classmethod
    def of(cls, stages: Iterable[BatchStage]) -> StagePace:
        """Compute the mean cost from the tasks that have finished."""
        stages = tuple(stages)
        reads = [stage for stage in stages if stage.read_bytes > 0]
        writes = [stage for stage in stages if stage.written_bytes > 0]
        return cls(
            read_ms=_ratio(_run_ms(reads), sum(stage.read_bytes for stage in reads)),
            written_ms=_ratio(_run_ms(writes), sum(stage.written_bytes for stage in writes)),
            task_ms=_ratio(_run_ms(stages), sum(stage.done for stage in stages)),
        )

    @staticmethod
    def whole_ms(stage: BatchStage) -> float:
        """Estimate the cost of a whole stage from its finished tasks, in ms of one slot."""
        return stage.run_ms / stage.done * stage.tasks if stage.done else 0.0

    def work_ms(self, stage: BatchStage, at: int) -> float:
        """Estimate the work left in a stage, in ms of one slot; 0 while nothing is known.

        The estimate uses the first of these that is known: the bytes that the stage's own tasks have read,
        its own tasks, the bytes that wait for it at the pace of other stages, the tasks of other stages. In a
        stage without a finished task, each task takes at least as long as the first one has run so far.
        """
        if stage.left == 0:
            return 0.0
        if stage.bytes and stage.read_bytes > 0:
            return stage.run_ms * max(0, stage.bytes - stage.read_bytes) / stage.read_bytes
        if stage.done > 0:
            return stage.run_ms / stage.done * stage.left
        so_far = 0.0 if stage.launched is None else float(max(0, at - stage.launched)) * stage.left
        if stage.bytes and self.read_ms is not None:
            return max(so_far, self.read_ms * stage.bytes)
        # Other stages say little about one that runs, and its own first tasks will finish soon.
        return max(so_far, self.task_ms * stage.left) if self.task_ms and so_far == 0.0 else so_far


def _run_ms(stages: Iterable[BatchStage]) -> int:
    return sum(stage.run_ms for stage in stages)


def _ratio(ms: int, of: int) -> float | None:
    return ms / of if of > 0 else None


_HELD_MS = 5_000
"""How long the highest number wanted counts: jobs pause between their stages."""

_SILENT_MS = 15_000
"""Stages are reported at least every 10 s. After this long without a report, their end was missed."""

_REPEAT_MS = 60_000
"""The shortest time between two reports, unless more executors are wanted."""

_QUIET_MS = 600_000
"""The same between reasons that small jobs alternate between."""

_AT_ONCE = frozenset({"batch_first", "batch_up", SPOKEN_OF_BATCH})
_QUIET = frozenset({"batch_keeps", "batch_held", "batch_over"})
_OVER = 20


@define(kw_only=True)
class BatchMemory:
    """Batch stages: `stages` are the current ones as of `at` (epoch ms), `over` the last ones that ended.

    `idle` are the executors that run none of their tasks. `crowded_ms`, `row`, `row_ms` and `active` are as
    in `BatchMetrics`. `wanted` lists the numbers of executors that the metrics alone called for, each after
    its time (epoch ms), the newest last. `executors` is the number wanted in the end. `told` is the last
    published report (reason and executors), and `told_at` its time. `seen` says that there has been a stage.
    """

    seen: bool = False
    stages: tuple[BatchStage, ...] = ()
    at: int = 0
    over: tuple[BatchStage, ...] = ()
    idle: frozenset[str] = frozenset()
    crowded_ms: int = 0
    row: int = 0
    row_ms: float = 0.0
    active: bool = False
    wanted: tuple[tuple[int, int], ...] = ()
    executors: int = 0
    told: tuple[str, int] | None = None
    told_at: int = 0

    def begin(self) -> None:
        """Forget the stages, since their fate is unknown: those that still run are reported again."""
        self.stages, self.idle = (), frozenset()

    def take(self, event: BatchStages) -> None:
        """Process a report of the current stages."""
        since = max(0, event.at - self.at)
        if any(stage.waiting for stage in self.stages):
            self.crowded_ms = min(HORIZON_MS, self.crowded_ms + min(since, _SILENT_MS))
        else:
            self.crowded_ms = max(0, self.crowded_ms - since)
        here = {stage.stage for stage in event.stages}
        gone = tuple(stage for stage in self.stages if stage.stage not in here)
        self.over = (*self.over, *gone)[-_OVER:]
        self.row += event.over
        self.row_ms += sum(map(StagePace.whole_ms, gone))
        if not self.crowded_ms:
            self.row, self.row_ms = 0, 0.0
        self.stages, self.idle, self.at = event.stages, frozenset(event.idle), event.at
        self.active = self.active or bool(event.stages) or event.over > 0
        self.seen = self.seen or self.active

    @property
    def busy(self) -> bool:
        """Whether tasks of batch stages run alongside those of the queries."""
        return any(stage.running for stage in self.stages)

    @property
    def demand(self) -> BatchDemand:
        """The demand that the supply of executors uses."""
        return BatchDemand(executors=self.executors, idle=self.idle, written_ms=self.pace.written_ms or 0.0)

    @property
    def pace(self) -> StagePace:
        """The cost of their tasks so far."""
        return StagePace.of((*self.over, *self.stages))

    @property
    def until(self) -> int | None:
        """When fewer executors may be wanted although nothing happens (epoch ms), None for never."""
        if not (self.wanted or self.stages):
            return None  # a fast path: each event asks, and most applications have no batch stages
        times = [at for at, executors in self.wanted if executors == self.executors > 0]
        ends = [self.at + _SILENT_MS] if self.stages else []
        if times and not (self.stages and self.wanted[-1][1] == self.executors):
            ends.append(max(times) + _HELD_MS)
        return min(ends, default=None)

    def metrics(self, at: int) -> BatchMetrics | None:
        """Return what a policy sees of the batch stages, None until there has been one."""
        if not self.seen:
            return None
        if at >= self.at + _SILENT_MS:
            self.begin()
        pace = self.pace
        return BatchMetrics(
            stages=self.stages,
            work_ms=sum(pace.work_ms(stage, at) for stage in self.stages),
            crowded_ms=self.crowded_ms,
            row=self.row,
            row_ms=self.row_ms,
            active=self.active or bool(self.stages),
            executors=self.executors,
            peak=self._peak(at),
        )

    def _peak(self, at: int) -> int:
        return max((executors for when, executors in self.wanted if when > at - _HELD_MS), default=0)

    def wants(self, wish: BatchWish, turn: Turn) -> None:
        """Note what is wanted, and publish it if it differs from before."""
        before, self.executors, self.active = self.executors, wish.executors, False
        recent = [one for one in self.wanted if one[0] > turn.now - _HELD_MS]
        raw = wish.executors if wish.unsmoothed is None else wish.unsmoothed
        self.wanted = (*recent, (turn.now, raw))
        told = (wish.reason, wish.executors)
        if told == self.told or turn.now < self.told_at + self._patience_ms(wish.reason):
            return
        self.told, self.told_at = told, turn.now
        numbers: dict[str, Number] = {**wish.numbers, "slots": turn.slots}
        said = catalogue.message(wish.reason, **numbers, before=before, after=wish.executors)
        said = catalogue.advised(said, only=turn.settings.advise_only)
        turn.publish(wish.reason, said, query=None, before=before, after=wish.executors, numbers=numbers)

    def _patience_ms(self, reason: str) -> int:
        """Return how long the next report waits after the last one; more executors are reported at once."""
        if reason in _AT_ONCE:
            return 0
        return _QUIET_MS if self.told is not None and {self.told[0], reason} <= _QUIET else _REPEAT_MS

    def validate(self) -> None:
        """Check that the memory is bounded. Raises AssertionError."""
        assert len(self.over) <= _OVER
        assert 0 <= self.crowded_ms <= HORIZON_MS
        assert [at for at, _ in self.wanted] == sorted(at for at, _ in self.wanted)
