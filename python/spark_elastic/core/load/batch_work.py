"""How much work is left in batch stages: by their own bytes where these are known, else by their tasks."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from spark_elastic.core.batch_events import BatchStage


@frozen(kw_only=True)
class Pace:
    """What batch stages have taken so far, in ms of one slot; None: nothing has told it yet.

    `read_ms` is for each byte read from shuffles, `written_ms` for each byte written to them, `task_ms` for
    each task.
    """

    read_ms: float | None = None
    written_ms: float | None = None
    task_ms: float | None = None

    @classmethod
    def of(cls, stages: Iterable[BatchStage]) -> Pace:
        """Take the mean of what the tasks that are done have taken."""
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
        """Estimate what all of a stage takes, in ms of one slot, by its tasks that are done."""
        return stage.run_ms / stage.done * stage.tasks if stage.done else 0.0

    def work_ms(self, stage: BatchStage, at: int) -> float:
        """Estimate what is left of a stage, in ms of one slot; 0 where nothing is known yet.

        In this order: by the bytes that its own tasks have read, by its own tasks, by the bytes that wait for
        it at the pace of other stages, by the tasks of others. A task of a stage of which none is over takes
        at least as long as the first one has run by now.
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
        # What others took says little of a stage that runs: its own first tasks tell soon.
        return max(so_far, self.task_ms * stage.left) if self.task_ms and so_far == 0.0 else so_far


def _run_ms(stages: Iterable[BatchStage]) -> int:
    return sum(stage.run_ms for stage in stages)


def _ratio(ms: int, of: int) -> float | None:
    return ms / of if of > 0 else None
