"""The duration of the last micro-batches of a query, and the time between their starts."""

from __future__ import annotations

from attrs import field, frozen

from spark_elastic.core.events import FullestPartition, QueryProgress, StageWork

BATCHES_KEPT = 5
"""The same number as for the gain model's median: one slow micro-batch should not move anything."""


@frozen(kw_only=True)
class Batch:
    """One committed micro-batch, run with `partitions` on `slots`.

    `gap_ms` is the time since the previous batch began, None for the first known one of a run; the
    `input_rows` arrived in that time. `batches` is 1 plus the batches that the sender has folded into this
    one: the rows are those of all, `duration_ms` is that of the last. `work` is the work of the tasks of the
    stages that read a shuffle, None if unknown. `source_tasks` is the number of tasks that read its sources,
    None if unknown; `whole` says that there could not have been more. `fullest` is the partition of a source
    with the largest share of the rows to be read, None if unknown.
    """

    duration_ms: int
    gap_ms: int | None
    input_rows: int
    partitions: int
    slots: int
    batches: int = 1
    work: StageWork | None = None
    source_tasks: int | None = None
    whole: bool = False
    fullest: FullestPartition | None = None

    @property
    def busy(self) -> float | None:
        """The share of the time that goes into micro-batches: input rate by processing rate.

        Above 1, more arrives than is processed. None where the time is unknown.
        """
        return None if self.gap_ms is None else self.duration_ms * self.batches / self.gap_ms

    @property
    def input_rows_per_second(self) -> float | None:
        """The rate at which rows arrive, None where the time is unknown.

        Spark's own rate uses the time since it last looked for data. That says nothing about a query without
        a trigger interval that finds none most of the time.
        """
        return None if self.gap_ms is None else self.input_rows * 1_000 / self.gap_ms


@frozen(kw_only=True)
class Pace:
    """The last micro-batches of one run, the newest last; `idle` says that nothing has arrived since.

    `started` is when the last one began (epoch ms), None before the first.
    """

    run: str = ""
    started: int | None = None
    batches: tuple[Batch, ...] = field(default=())
    idle: bool = False

    @property
    def latest(self) -> Batch | None:
        """The last micro-batch, None before the first."""
        return self.batches[-1] if self.batches else None

    def after(self, progress: QueryProgress, slots: int, work: StageWork | None = None) -> Pace:
        """Add a micro-batch that has run on this many slots; one of another run starts over."""
        known = self if self.run == progress.run else Pace()
        gap = None if known.started is None else progress.started - known.started
        batch = Batch(
            duration_ms=progress.duration_ms,
            # A gap across a clock that was set back is meaningless.
            gap_ms=gap if gap is not None and gap > 0 else None,
            input_rows=progress.input_rows,
            partitions=progress.partitions,
            slots=slots,
            batches=1 + progress.merged,
            work=work,
            source_tasks=progress.source_tasks,
            whole=progress.whole,
            fullest=progress.fullest,
        )
        batches = (*known.batches, batch)[-BATCHES_KEPT:]
        return Pace(run=progress.run, started=progress.started, batches=batches)

    def resting(self, run: str) -> Pace:
        """Record that a run has had nothing to read for a while; earlier measurements no longer apply."""
        return Pace(run=run, started=self.started if self.run == run else None, idle=True)
