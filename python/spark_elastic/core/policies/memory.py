"""The policies' memory of one query: plain, bounded data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import attrs
from attrs import define

from spark_elastic.core import events as ev
from spark_elastic.core.actions import SourceLimit
from spark_elastic.core.bounds.kept import UnusableText, lines_of, unusable
from spark_elastic.core.events import BatchPlanned, QueryProgress
from spark_elastic.core.load.pace import Batch
from spark_elastic.core.policies.autoscale.model import BatchTime, fit
from spark_elastic.core.policies.limits import Granted
from spark_elastic.core.policies.view import Applied, Running, Sample, SlotLimits, Wanted
from spark_elastic.core.query.record import QueryRecord, keep_text
from spark_elastic.core.turn import Turn

_SAMPLES = 20
_EARLIER = 36
_EARLIER_ALIKE = 4
_EARLIER_MS = 3_600_000
_APPLIED = 16
_WANTED = 64
_PAUSES = 5
_UNSTEADY = 2
"""Batches that are not steady after a change: the one during the change, and the first on cold executors."""


def newest_alike(samples: Sequence[Sample], each: int, most: int) -> tuple[Sample, ...]:
    """Return the newest samples, `each` per size and number of slots, `most` in all, the newest last."""
    count: dict[tuple[int, int], int] = defaultdict(int)
    kept = []
    for sample in reversed(samples):
        alike = sample.size, sample.slots
        count[alike] += 1
        if count[alike] <= each:
            kept.append(sample)
    return tuple(reversed(kept[:most]))


@define(kw_only=True)
class QueryMemory:
    """One query: what its view shows, and what was last reported about it.

    `limits` are those that policies have stated. `decided` is the outcome of the last wish for the query,
    which had `before` slots then. `raised_at` is when it was last granted more slots, None if never.
    `unsteady` counts the next micro-batches that belong to no number of slots. `paused` is when the last
    rescale in `pauses_ms` ended. `told` is the last published report: reason, slots granted, and why these
    were trimmed; `told_at` is its time. `idle_at` is when there was last nothing to read, None if there has
    been a micro-batch since (all times are epoch ms).

    `read` are the rows that the last micro-batch has read from each source. `throttled` are the limits in
    force for the sources in `run`, set by the order `throttle`; `unlimited` says that such an order has
    failed. `held_back` says that more rows waited than the limits let in, and that this was reported. `begun`
    says that the text kept beside the checkpoint was checked. `kept` is that text, or the one that was
    ordered last (`keeps` is that order). Another one is kept from `keep_from` on (epoch ms).
    """

    run: str = ""
    samples: tuple[Sample, ...] = ()
    earlier: tuple[Sample, ...] = ()
    running: Running | None = None
    applied: tuple[Applied, ...] = ()
    wanted: tuple[Wanted, ...] = ()
    pauses_ms: tuple[int, ...] = ()
    paused: int = 0
    unsteady: int = 0
    limits: tuple[SlotLimits, ...] = ()
    decided: Granted | None = None
    before: int = 0
    granted: int | None = None
    granted_at: int = 0
    raised_at: int | None = None
    told: tuple[str, int, str] | None = None
    told_at: int = 0
    idle_at: int | None = None
    read: tuple[int, ...] = ()
    throttled: tuple[SourceLimit, ...] = ()
    throttle: str = ""
    unlimited: bool = False
    held_back: bool = False
    begun: bool = False
    kept: str = ""
    keeps: str = ""
    keep_from: int = 0

    def planned(self, event: BatchPlanned, at: int, before: int | None, interval_ms: int, slots: int) -> None:
        """Process a micro-batch that begins; `before` is when the one before it began, None if unknown."""
        if event.input_rows == 0:
            return  # it only removes old state
        self._of_run(event.run, at)
        gap = None
        if self.idle_at is not None:
            gap = self._gap_ms(at, self.idle_at, interval_ms)
        elif before is not None and before < at:
            gap = at - before
        self.running = Running(
            at=at, slots=slots, input_rows=event.input_rows, behind=event.records_behind, gap_ms=gap
        )

    def _of_run(self, run: str, at: int) -> None:
        """Put the samples of an earlier run aside."""
        if run != self.run:
            self._put_aside(self.samples, at)
            self.run, self.samples, self.throttled, self.running = run, (), (), None

    @staticmethod
    def _gap_ms(started: int, idle_at: int, interval_ms: int) -> int:
        """Return the time in which the rows of the first micro-batch after a rest have arrived.

        Idleness is reported repeatedly: that is since the last report, or since the trigger before this one.
        """
        return max(interval_ms, started - idle_at, 1)

    def batch(
        self,
        progress: QueryProgress,
        batch: Batch,
        at: int,
        *,
        alone: bool = True,
        total: int = 0,
        interval_ms: int = 0,
    ) -> None:
        """Process a committed micro-batch. Samples of an earlier run then only show how long batches take.

        It is not `alone` if it had more than the slots of its query, or shared them. `total` is the number of
        slots of all executors, `interval_ms` the trigger interval.
        """
        self._of_run(progress.run, at)
        if self.running is not None and self.running.changed > self.running.at:
            batch = attrs.evolve(batch, slots=self.running.mean_slots(at))
        self.running = None
        if self.idle_at is not None:
            batch = attrs.evolve(batch, gap_ms=self._gap_ms(progress.started, self.idle_at, interval_ms))
            self.idle_at = None
        self.read = tuple(source.rows for source in progress.sources)
        sample = Sample(
            **attrs.asdict(batch, recurse=False),
            at=at,
            started=progress.started,
            behind=progress.records_behind,
            offsets_behind=progress.offsets_behind,
            steady=alone and self.unsteady == 0,
            total=total,
        )
        self.unsteady = max(0, self.unsteady - 1)
        self._put_aside(self.samples[: 1 - _SAMPLES], at)
        self.samples = (*self.samples, sample)[-_SAMPLES:]

    def rested(self, at: int) -> None:
        """Note that there has been nothing to read for a while, so earlier rates no longer count."""
        self._put_aside(self.samples, at)
        self.samples, self.running, self.idle_at = (), None, at

    def runs_with(self, at: int, slots: int, partitions: int | None) -> None:
        """Note the slots and partitions that the query runs with, if they have changed."""
        if self.running is not None and self.running.slots != slots:
            self.running = self.running.with_slots(slots, at)
        last = self.applied[-1] if self.applied else None
        if last is not None and (last.slots, last.partitions) == (slots, partitions):
            return
        if last is not None and (self.samples or self.running is not None):
            self.unsteady = _UNSTEADY
        self.applied = (*self.applied, Applied(at=at, slots=slots, partitions=partitions))[-_APPLIED:]

    def wants(self, at: int, slots: int, window_ms: int, rows_per_ms: float | None = None) -> None:
        """Note the slots that the metrics call for; earlier entries with no more slots are merged into it."""
        began = at
        kept = list(self.wanted)
        while kept and kept[-1].slots <= slots:
            began = kept.pop().at
        kept.append(Wanted(at=began, last=at, slots=slots, rows_per_ms=rows_per_ms))
        # Keep the last one from before the window, since it shows that the window is full.
        while len(kept) > 1 and kept[1].at <= at - window_ms and kept[0].last <= at - window_ms:
            del kept[0]
        self.wanted = tuple(kept[-_WANTED:])

    def paused_for(self, ended: int, took_ms: int) -> None:
        """Note how long a rescale took that ended at `ended` (epoch ms)."""
        if ended > self.paused:
            self.paused = ended
            self.pauses_ms = (*self.pauses_ms, took_ms)[-_PAUSES:]

    def _put_aside(self, samples: tuple[Sample, ...], at: int) -> None:
        """Keep a few of the samples that are no longer the last ones, per size and number of slots."""
        # The measurements of their tasks only describe the present.
        more = [
            attrs.evolve(sample, work=None) for sample in samples if sample.steady and sample.input_rows > 0
        ]
        if not more:
            return
        young = [sample for sample in (*self.earlier, *more) if sample.at > at - _EARLIER_MS]
        self.earlier = newest_alike(young, _EARLIER_ALIKE, _EARLIER)

    def validate(self) -> None:
        """Check that the memory is bounded and in order. Raises AssertionError."""
        assert len(self.samples) <= _SAMPLES
        assert len(self.earlier) <= _EARLIER
        assert len(self.wanted) <= _WANTED
        assert [one.slots for one in self.wanted] == sorted((one.slots for one in self.wanted), reverse=True)
        assert self.granted is None or self.granted >= 1


# ---- The durations of micro-batches, as they are kept beside a query's checkpoint for the next driver. After
# an outage of the driver, the first micro-batch of the next one has the largest backlog of all, and no
# measurements of its own to limit it.


_FORM = "spark-elastic batches 1"
_MOST = 16
_ALIKE = 4
_AGAIN_MS = 600_000
"""The shortest time between two texts: the storage of checkpoints may be slow, and charges per request."""
_LOOK_MS = 10_000
"""How often to check whether there is something to keep: decisions are made each second."""
_OTHER = 0.25
"""The kept text stays as it is unless a duration that it predicts is off by more than this part."""
_TRUSTED = 0.55
"""The minimum confidence of what is kept, slightly above the minimum for limiting micro-batches."""


def write(samples: Iterable[Sample]) -> str:
    """Return the text to keep: a line with its format, then one for some micro-batches, the newest last.

    Each line has the rows, slots, partitions and ms of a micro-batch.
    """
    kept = newest_alike([one for one in samples if _tells(one)], _ALIKE, _MOST)
    batches = (
        f"{max(1, round(one.rows_per_batch))} {one.slots} {one.partitions} {one.duration_ms}" for one in kept
    )
    return "\n".join((_FORM, *batches)) + "\n"


def _tells(sample: Sample) -> bool:
    """Return whether a micro-batch is representative of others."""
    return sample.steady and min(sample.input_rows, sample.slots, sample.partitions) > 0


def read(text: str, at: int) -> tuple[Sample, ...]:
    """Read the output of `write`, as micro-batches that ended `at` (epoch ms). Raises UnusableText."""
    return tuple(_sample(line, at) for line in lines_of(text, _FORM))


def _sample(line: str, at: int) -> Sample:
    try:
        rows, slots, partitions, took_ms = (int(part) for part in line.split())
        if min(rows, slots, partitions) < 1 or took_ms < 0:
            raise ValueError("rows, slots and partitions are 1 or more, ms 0 or more")
    except ValueError as error:
        raise unusable(line, str(error)) from error
    return Sample(
        duration_ms=took_ms, gap_ms=None, input_rows=rows, partitions=partitions, slots=slots,
        at=at, started=at - took_ms,
    )  # fmt: skip


def recall_batches(record: QueryRecord, memory: QueryMemory, turn: Turn) -> None:
    """Restore what is kept beside the checkpoint of a query without measurements."""
    memory.run = record.run
    text = record.facts.kept_batches
    if text is None or memory.samples:
        return
    try:
        memory.earlier = read(text, turn.now)
    except UnusableText as error:
        turn.report("kept_batches_unusable", query=record.facts.query, error=str(error))
        return
    memory.kept, memory.keep_from = text, turn.now + _AGAIN_MS
    turn.report("batches_recalled", query=record.facts.query, batches=len(memory.earlier))


def keep_batches(record: QueryRecord, memory: QueryMemory, turn: Turn) -> None:
    """Order that the durations of a query's micro-batches outlive the driver, if they have changed."""
    if turn.settings.advise_only or record.facts.trigger != "processing_time":
        return  # advice-only runs keep nothing; other triggers have no batches that repeat
    if turn.now < memory.keep_from:
        return
    memory.keep_from = turn.now + _LOOK_MS
    text = write((*memory.earlier, *memory.samples))
    model = fit(read(text, turn.now))
    if model is None or model.confidence < _TRUSTED:
        return
    memory.keep_from = turn.now + _AGAIN_MS
    if memory.kept and not _is_news(fit(read(memory.kept, turn.now)), model, memory.samples):
        return
    memory.kept = text
    memory.keeps = keep_text(record, "batches", text, turn)


def batches_not_kept(event: ev.ActionFailed, memory: QueryMemory) -> None:
    """Process a failed order: if it was the one to keep the text, the next text counts as new."""
    if event.action == memory.keeps:
        memory.kept = ""


def _is_news(before: BatchTime | None, now: BatchTime, samples: Sequence[Sample]) -> bool:
    """Return whether the kept text predicts another duration for one of the last micro-batches."""
    if before is None:
        return True
    read_some = [sample for sample in samples if sample.input_rows > 0]
    known = [(sample.rows_per_batch, sample.parallelism) for sample in read_some]
    return any(
        abs(before.batch_ms(rows, slots) - now.batch_ms(rows, slots)) > _OTHER * now.batch_ms(rows, slots)
        for rows, slots in known
    )
