"""What is remembered of one query for the policies: plain data, and bounded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import attrs
from attrs import define

from spark_elastic.core import events as ev
from spark_elastic.core.actions import SourceLimit
from spark_elastic.core.bounds.kept import UnusableText, lines_of, unusable
from spark_elastic.core.events import QueryProgress
from spark_elastic.core.load.pace import Batch
from spark_elastic.core.policies.autoscale.model import BatchTime, fit
from spark_elastic.core.policies.limits import Granted
from spark_elastic.core.policies.view import Applied, Sample, SlotLimits, Wanted
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
"""Batches that are not steady after a change: the one that it fell into, and the first on cold executors."""


def newest_alike(samples: Sequence[Sample], each: int, most: int) -> tuple[Sample, ...]:
    """Return the newest samples, `each` of one size and number of slots, `most` in all, the newest last."""
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
    """One query: what its view shows, and what of it was told last.

    `limits` are those that policies have stated. `decided` is what became of the last wish for it, when it
    had so many slots `before`. `raised_at` is when it was granted more slots the last time, None: never.
    `unsteady` counts the next batches that belong to no number of slots. `paused` is when the last rescale
    ended that is in `pauses_ms` (epoch ms). `told` is what was published last: reason, slots granted, and why
    these were trimmed; `told_at` when. `idle_at` is when there was nothing to read the last time, None if
    there has been a batch since (all epoch ms). `read` are the rows that the last batch has read of each
    source, `throttled` the limits that are in force for them in `run`, by the order `throttle`; `unlimited`
    says that such an order has failed. `held_back` says that there was more to read than the limits let in,
    and that this was told. `begun` says that what is kept beside the checkpoint was looked at; `kept` is that
    text, or the one that was ordered last (`keeps` is that order), and another one is kept from `keep_from`
    on (epoch ms).
    """

    run: str = ""
    samples: tuple[Sample, ...] = ()
    earlier: tuple[Sample, ...] = ()
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
        """Take in a committed micro-batch; of one of another run the earlier ones only tell what it takes.

        One that had more than the slots of its query is not `alone` with them; `total` are those of all
        executors. `interval_ms` is that of the trigger.
        """
        if progress.run != self.run:
            self._put_aside(self.samples, at)
            self.run, self.samples, self.throttled = progress.run, (), ()
        if self.idle_at is not None:
            # That there is nothing to read is said again and again: the rows have come since the last time,
            # or since the trigger before this one.
            batch = attrs.evolve(batch, gap_ms=max(interval_ms, progress.started - self.idle_at, 1))
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
        """Take in that there has been nothing to read for a while: what came in before says no more."""
        self._put_aside(self.samples, at)
        self.samples, self.idle_at = (), at

    def runs_with(self, at: int, slots: int, partitions: int | None) -> None:
        """Note with what the query runs, if that is something else than before."""
        last = self.applied[-1] if self.applied else None
        if last is not None and (last.slots, last.partitions) == (slots, partitions):
            return
        if last is not None and self.samples:
            self.unsteady = _UNSTEADY
        self.applied = (*self.applied, Applied(at=at, slots=slots, partitions=partitions))[-_APPLIED:]

    def wants(self, at: int, slots: int, window_ms: int, rows_per_ms: float | None = None) -> None:
        """Note what the metrics call for; what was wanted before and is no more than this is part of it."""
        began = at
        kept = list(self.wanted)
        while kept and kept[-1].slots <= slots:
            began = kept.pop().at
        kept.append(Wanted(at=began, last=at, slots=slots, rows_per_ms=rows_per_ms))
        # The last one from before the window tells that the window is full.
        while len(kept) > 1 and kept[1].at <= at - window_ms and kept[0].last <= at - window_ms:
            del kept[0]
        self.wanted = tuple(kept[-_WANTED:])

    def paused_for(self, ended: int, took_ms: int) -> None:
        """Note how long a rescale has taken that ended then (epoch ms)."""
        if ended > self.paused:
            self.paused = ended
            self.pauses_ms = (*self.pauses_ms, took_ms)[-_PAUSES:]

    def _put_aside(self, samples: tuple[Sample, ...], at: int) -> None:
        """Keep of the samples that are no longer the last ones a few for each size and number of slots."""
        # What their tasks took tells of now.
        more = [
            attrs.evolve(sample, work=None) for sample in samples if sample.steady and sample.input_rows > 0
        ]
        if not more:
            return
        young = [sample for sample in (*self.earlier, *more) if sample.at > at - _EARLIER_MS]
        self.earlier = newest_alike(young, _EARLIER_ALIKE, _EARLIER)

    def validate(self) -> None:
        """Check that it is bounded and in order. Raises AssertionError."""
        assert len(self.samples) <= _SAMPLES
        assert len(self.earlier) <= _EARLIER
        assert len(self.wanted) <= _WANTED
        assert [one.slots for one in self.wanted] == sorted((one.slots for one in self.wanted), reverse=True)
        assert self.granted is None or self.granted >= 1


# What micro-batches take, as it is kept beside a query's checkpoint for the next driver.
# After an outage of the driver the first micro-batch of the next one has the largest backlog of all, and
# nothing of its own to be limited by.


_FORM = "spark-elastic batches 1"
_MOST = 16
_ALIKE = 4
_AGAIN_MS = 600_000
"""What is kept is replaced no sooner: the storage of checkpoints may be slow, and charges by the request."""
_LOOK_MS = 10_000
"""How often it is looked whether there is something to keep: a decision is made each second."""
_OTHER = 0.25
"""What is kept stays as it is where it says nothing that differs by more."""
_TRUSTED = 0.55
"""The least confidence of what is kept, a little more than what micro-batches are limited by."""


def write(samples: Iterable[Sample]) -> str:
    """Return the text that is kept: a line of its form, and for some micro-batches one, the newest last.

    A line has rows, slots, partitions and ms of a micro-batch.
    """
    kept = newest_alike([one for one in samples if _tells(one)], _ALIKE, _MOST)
    batches = (
        f"{max(1, round(one.rows_per_batch))} {one.slots} {one.partitions} {one.duration_ms}" for one in kept
    )
    return "\n".join((_FORM, *batches)) + "\n"


def _tells(sample: Sample) -> bool:
    """Say whether a micro-batch tells what others take."""
    return sample.steady and min(sample.input_rows, sample.slots, sample.partitions) > 0


def read(text: str, at: int) -> tuple[Sample, ...]:
    """Read what `write` has written, as micro-batches that ended `at` (epoch ms). Raises Unusable."""
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
    """Take up what is kept beside the checkpoint of a query of which nothing is known yet."""
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
    """Order that what the micro-batches of a query take outlives the driver, where that is news."""
    if turn.settings.advise_only or record.facts.trigger != "processing_time":
        return  # nothing outlives one who only advises; other triggers have no batches that repeat
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
    """Take in that an order has failed: if it was this one, the next text is news."""
    if event.action == memory.keeps:
        memory.kept = ""


def _is_news(before: BatchTime | None, now: BatchTime, samples: Sequence[Sample]) -> bool:
    """Say whether one of the last micro-batches would have taken another time by what is kept."""
    if before is None:
        return True
    read_some = [sample for sample in samples if sample.input_rows > 0]
    known = [(sample.rows_per_batch, sample.parallelism) for sample in read_some]
    return any(
        abs(before.batch_ms(rows, slots) - now.batch_ms(rows, slots)) > _OTHER * now.batch_ms(rows, slots)
        for rows, slots in known
    )
