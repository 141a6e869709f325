"""How long a micro-batch takes: a + b · rows ÷ slots + a part for each partition.

A query reads its source in one stage, with a task for each source partition, and does its work in a second
one, with a task for each shuffle partition. A stage fills its slots as often as it has to, the last time
perhaps not all of them (unless others share them, and fill them), and takes no less than its largest task.
What is left, planning, offsets, commit, takes the same whatever the slots.
"""

from __future__ import annotations

from attrs import field, frozen
from attrs.validators import and_, ge, le


@frozen(kw_only=True)
class BatchCost:
    """What the micro-batches of one query cost.

    `fixed_ms` is what each takes, `task_ms` what each task takes without a row; `read_us` and `work_us` are
    what a row takes in one slot, in the first and in the second stage. Without `work_us` there is no second
    one. `hot_key` is the share of the rows that one key has, so one task. `jitter` is the standard deviation
    of the logarithm of the durations, as measured: 0.1 is 10 %. Raises ValueError for negative numbers.
    """

    fixed_ms: float = field(default=300.0, validator=ge(0))
    task_ms: float = field(default=20.0, validator=ge(0))
    read_us: float = field(default=20.0, validator=ge(0))
    work_us: float = field(default=80.0, validator=ge(0))
    hot_key: float = field(default=0.0, validator=and_(ge(0), le(1)))
    jitter: float = field(default=0.05, validator=and_(ge(0), le(2)))

    @property
    def has_shuffle(self) -> bool:
        """Whether there is a second stage."""
        return self.work_us > 0

    def read_ms(self, rows: int, tasks: int, largest: float, slots: float, shared: bool = False) -> float:
        """Estimate the first stage: `largest` is the share of the largest source partition."""
        return self._stage_ms(rows * self.read_us / 1_000, tasks, largest, slots, shared)

    def work_ms(self, rows: int, tasks: int, slots: float, shared: bool = False) -> float:
        """Estimate the second stage."""
        if not self.has_shuffle:
            return 0.0
        return self._stage_ms(rows * self.work_us / 1_000, tasks, self.hot_key, slots, shared)

    def batch_ms(
        self, rows: int, sources: int, largest: float, partitions: int, slots: float, shared: bool = False
    ) -> float:
        """Estimate a whole micro-batch without chance; more than 0 slots, which it has alone or `shared`."""
        read = self.read_ms(rows, sources, largest, slots, shared)
        return self.fixed_ms + read + self.work_ms(rows, partitions, slots, shared)

    def _stage_ms(self, work_ms: float, tasks: int, largest: float, slots: float, shared: bool) -> float:
        # Less than one slot is one that is shared in time.
        waves = max(1.0, tasks / slots) if shared or slots < 1 else -(-tasks // int(slots))
        even = waves * (self.task_ms + work_ms / tasks)
        hot = (self.task_ms + work_ms * largest) / min(1.0, slots)
        return max(even, hot)
