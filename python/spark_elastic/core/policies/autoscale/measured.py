"""Measurements that follow from a query's micro-batches alone: computed once for these, not per decision.

A decision covers all queries, and most of them have reported nothing since the last one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median, median_low
from typing import NamedTuple

from attrs import field, frozen

from spark_elastic.core.events import QueryFacts
from spark_elastic.core.load.reading import Reading
from spark_elastic.core.policies.autoscale.model import (
    Backlog,
    BatchTime,
    Inflow,
    Objective,
    backlog,
    fit,
    inflow,
    rows_waiting,
)
from spark_elastic.core.policies.view import QueryMetrics, Sample, kept_busy
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.turn import Number

# ---- Whether more slots have made a query faster: a step up that made batches slower is reverted. The
# comparison uses micro-batches of about the same rows that ran with the slots that were *applied*, several of
# each, not the predictions for those that were wanted. Measurements are kept for a while
# (`QueryMetrics.earlier`), and the step is not repeated in that time.


_KNOWN_BATCHES = 3
_SLOWER = 1.1


@frozen(kw_only=True)
class Worse:
    """With `slots` a batch took `before_ms`, with `more` it took `after_ms`."""

    slots: int
    more: int
    before_ms: float
    after_ms: float


def made_worse(samples: Sequence[Sample]) -> Worse | None:
    """Find the fewest slots with which batches were faster than with the next larger number, None if none."""
    took: dict[int, dict[int, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        if sample.steady and sample.input_rows > 0 and sample.slots > 0:
            took[sample.size][sample.slots].append(sample)
    found: list[Worse] = []
    for by_slots in took.values():
        if len(by_slots) < 2:
            continue
        known = sorted(
            (slots, batches) for slots, batches in by_slots.items() if len(batches) >= _KNOWN_BATCHES
        )
        found += (
            Worse(slots=fewer, more=more, before_ms=_typical(before), after_ms=_typical(after))
            for (fewer, before), (more, after) in pairwise(known)
            if _slower(before, after)
        )
    return min(found, key=lambda worse: worse.slots) if found else None


def _typical(batches: Sequence[Sample]) -> float:
    return float(median(batch.duration_ms for batch in batches))


def _slower(before: Sequence[Sample], after: Sequence[Sample]) -> bool:
    """Return whether batches took longer in total and per row, since there may be more rows by then."""
    limit = _typical(before)
    if min(batch.duration_ms for batch in after) <= limit or _typical(after) <= limit * _SLOWER:
        return False
    there = median(batch.total for batch in after)
    if 0 < there <= median(batch.total for batch in before):
        return False  # there were no more executors, only slots that others had used before
    return _per_row(after) > _per_row(before) * _SLOWER


def _per_row(batches: Sequence[Sample]) -> float:
    return median(batch.duration_ms / batch.rows_per_batch for batch in batches)


# ---- Whether memory is short: how much of the tasks' time goes into garbage collection and spill. More
# executors do not help: each runs the same number of tasks at once, with the same memory per task.


_TOO_MUCH = 0.3
"""Three times what Spark's UI marks as too much garbage collection of a task."""
_ENOUGH, _LAST = 2, 3
"""Two batches are enough, as for a rate: a lack of memory must be known before the rate is acted on."""
_DISK_BYTES_PER_MS = 125_000
"""The default write rate of a cloud disk (125 MB/s), so that spill can be expressed as time."""


@frozen(kw_only=True)
class Pressure:
    """The `share` of the tasks' time (above 0, up to 1) that is lost because memory is short.

    `gc_share` of the tasks' time goes into garbage collection; a micro-batch spills `spilled_bytes`.
    """

    share: float
    gc_share: float
    spilled_bytes: int


def memory_pressure(samples: Sequence[Sample]) -> Pressure | None:
    """Return the pressure in the last micro-batches, None if memory was not short or that is unknown."""
    works = [one.work for one in samples[-_LAST:] if one.work is not None and one.work.run_ms > 0]
    if len(works) < _ENOUGH:
        return None
    lost = [(work.gc_ms + work.spilled_bytes / _DISK_BYTES_PER_MS) / work.run_ms for work in works]
    share = min(1.0, median_low(lost))
    if share < _TOO_MUCH:
        return None
    return Pressure(
        share=share,
        gc_share=min(1.0, median_low(work.gc_ms / work.run_ms for work in works)),
        spilled_bytes=median_low(work.spilled_bytes for work in works),
    )


# ---- Whether one task holds up the others: one key or partition has too many of the rows, or of those
# behind. A micro-batch cannot be shorter than its longest task, however many slots there are.


_FAR = 5
"""The multiple of the median that counts as far above it, as in Spark's ``skewedPartitionFactor``."""
_MOST = 0.5
"""The part of a micro-batch above which one task holds it up."""
_HOT = 0.5
"""The share of the rows behind above which one partition holds up a query."""
_FEWEST_PARTITIONS = 3


@frozen(kw_only=True)
class Skew:
    """The longest task takes `longest_ms`, half of the tasks take `median_ms` or less.

    On `useful` slots all other tasks have finished when the longest one does.
    """

    longest_ms: int
    median_ms: int
    useful: int


def skewed(samples: Sequence[Sample]) -> Skew | None:
    """Return the skew if one task took far longer than others in all of the last micro-batches, else None."""
    last = samples[-_LAST:]
    if len(last) < _ENOUGH or not all(map(_has_skew, last)):
        return None
    works = [one.work for one in last if one.work is not None]
    longest = median(work.longest_ms for work in works)
    return Skew(
        longest_ms=round(longest),
        median_ms=round(median(work.median_ms for work in works)),
        useful=math.ceil(median(work.run_ms for work in works) / longest),
    )


def _has_skew(sample: Sample) -> bool:
    work = sample.work
    if work is None:
        return False
    return work.longest_ms > max(_FAR * work.median_ms, _MOST * sample.duration_ms)


@frozen(kw_only=True)
class Hot:
    """The partition of a source with the `share` of the rows to read; `partition` is "" without a name."""

    share: float
    partition: str = ""

    @property
    def useful(self) -> int:
        """The slots on which all other partitions have been read when this one has."""
        return math.ceil(1 / self.share)

    @property
    def numbers(self) -> Mapping[str, Number]:
        """The numbers that a decision reports about it."""
        named = f"partition {self.partition}" if self.partition else "one partition"
        return {"hot_percent": round(100 * self.share), "hot_partition": named}


def hot_behind(latest: Sample) -> Hot | None:
    """Return the partition that has most of the rows behind, None if there is none or it is unknown."""
    offsets, behind = latest.offsets_behind, latest.behind
    if offsets is None or not behind or offsets.avg <= 0:
        return None
    partitions = behind / offsets.avg
    share = offsets.max / behind
    if partitions < _FEWEST_PARTITIONS or share <= _HOT:
        return None
    fullest = latest.fullest
    return Hot(share=share, partition="" if fullest is None else fullest.name)


def hot_input(samples: Sequence[Sample]) -> Hot | None:
    """Return the partition that had most of the rows to read in each of the last micro-batches, else None."""
    last = samples[-_LAST:]
    told = [one.fullest for one in last if one.fullest is not None]
    if len(last) < _ENOUGH or len(told) < len(last) or len({one.name for one in told}) > 1:
        return None
    if not all(one.partitions >= _FEWEST_PARTITIONS and one.share > _HOT for one in told):
        return None
    return Hot(share=median(one.share for one in told), partition=told[-1].name)


# ---- What has been tried: slots that were too few for a load are not used again while the load is no less. A
# line predicts the effect of slots. But tasks run in whole waves, and other queries run alongside, so a count
# that it recommends may fall short repeatedly. A measurement with that count has more weight.


_TRIES = 2
_ALIKE = 0.6
"""A batch with at least this part of the rows shows how long all of them would take."""


def tried(samples: Sequence[Sample], rows: float, fixed_ms: float) -> Mapping[int, float]:
    """Return, by the slots that were measured, how long a batch of `rows` takes with them (ms).

    A batch of other rows counts with the part beyond `fixed_ms`, in proportion. At least two batches are
    needed, so that a single slow one shows nothing.
    """
    found: dict[int, list[float]] = defaultdict(list)
    least = _ALIKE * rows
    if rows > 0:
        for sample in samples:
            if sample.steady and sample.slots > 0 and sample.rows_per_batch >= least:
                grows = max(0.0, sample.duration_ms - fixed_ms)
                found[sample.slots].append(fixed_ms + grows * rows / sample.rows_per_batch)
    return {slots: median(took) for slots, took in found.items() if len(took) >= _TRIES}


def most_that_fell_short(took: Mapping[int, float], room_ms: float) -> int:
    """Return the most slots whose `tried` duration would not fit into the room, 0 for none."""
    return max((slots for slots, ms in took.items() if ms > room_ms), default=0)


_NOTHING = BatchTime(fixed_ms=0.0, row_ms=0.0, samples=0, error=0.0, separates=False)
"""The duration of batches if none of them has read rows."""


@frozen
class _Lasting:
    """What the committed micro-batches of a query show, whatever arrives.

    `model` is how long they take, None if none of them has read rows; `most_rows` is the size of the largest.
    `hot_input` is the one partition that has most of what arrives, `worse` is a step up that made batches
    slower, `pressure` a lack of memory, `skew` a task that holds up the others, None if there is none.
    `source_tasks` is the most tasks that read the sources in a batch where more were not possible, or with
    more slots than tasks, None without such a batch.
    """

    model: BatchTime | None
    most_rows: float
    hot_input: Hot | None
    worse: Worse | None
    pressure: Pressure | None
    skew: Skew | None
    source_tasks: int | None


@frozen(eq=False)
class Batches:
    """The committed micro-batches of a query, what it takes to read them, and what they show (`lasting`).

    Compared by identity: `of` returns the same object as long as it is about the same batches.
    """

    samples: tuple[Sample, ...]
    earlier: tuple[Sample, ...]
    facts: QueryFacts
    settings: CoreSettings
    throttled: bool
    lasting: _Lasting = field(init=False)

    @classmethod
    def of(cls, query: QueryMetrics, before: Batches | None = None) -> Batches:
        """Return the batches of a query, which are those `before` if it has none that are newer."""
        if (
            before is not None
            # None of these ever changes, and comparing each batch would cost more than it saves.
            and before.samples is query.samples
            and before.earlier is query.earlier
            and before.facts is query.facts
            and before.settings is query.settings
            and before.throttled == query.throttled
        ):
            return before
        return cls(query.samples, query.earlier, query.facts, query.settings, query.throttled)

    @lasting.default
    def _shown(self) -> _Lasting:
        samples, together = self.samples, (*self.earlier, *self.samples)
        return _Lasting(
            model=fit(together),
            most_rows=max((sample.rows_per_batch for sample in together), default=0.0),
            hot_input=hot_input(samples),
            worse=made_worse(together),
            pressure=memory_pressure(samples),
            skew=skewed(samples),
            source_tasks=_tasks_below_slots(together),
        )


def _tasks_below_slots(samples: Sequence[Sample]) -> int | None:
    short = [
        sample.source_tasks
        for sample in samples
        if sample.steady
        and sample.source_tasks  # a batch without rows has no tasks
        and (sample.whole or sample.source_tasks < sample.slots)
    ]
    return max(short) if short else None


@frozen(kw_only=True)
class Measured:
    """How long batches take, what arrives, and what follows from that with the settings of the query.

    `latest` is the last micro-batch. It is `foreseen` if that one still runs: its duration is then expected.
    `waiting` is the number of rows that wait beyond those that one batch reads anyway, and `backlog` is what
    has piled up, None if negligible. `hot` is the one partition that has most of it, None if there is none.
    `fell_short` is the most slots that were measured as too few for what arrives, 0 for none.
    """

    latest: Sample
    foreseen: bool
    model: BatchTime
    inflow: Inflow
    objective: Objective
    waiting: float
    backlog: Backlog | None
    hot: Hot | None
    fell_short: int


def measured(batches: Batches, running: Sample | None = None) -> Measured | None:
    """Return what micro-batches show, with one that is `running` as the last; None if they show no rate."""
    samples, own, interval = batches.samples, batches.settings, batches.facts.trigger_ms
    seen = samples if running is None else (*samples, running)
    comes_in = inflow(seen, interval, throttled=batches.throttled)
    if comes_in is None:
        return None
    model = batches.lasting.model or (fit(seen) if running is not None else None)
    if model is None and comes_in.rows_per_ms > 0:
        return None
    line = _NOTHING if model is None else model
    load = comes_in.variation.load if own.target_load is None else own.target_load
    objective = Objective(interval_ms=interval, load=load, max_lag_ms=own.max_lag_ms)
    waiting = rows_waiting(comes_in, seen[-1], objective, runs=running is not None)
    piled_up = backlog(waiting, comes_in, objective, own.catch_up_ms)
    took = tried((*batches.earlier, *samples), comes_in.rows_per_ms * interval, line.fixed_ms)
    room = min(1.0, load + own.load_band / 2) * interval
    return Measured(
        latest=seen[-1],
        foreseen=running is not None,
        model=line,
        inflow=comes_in,
        objective=objective,
        waiting=waiting,
        backlog=piled_up,
        hot=None if piled_up is None or not samples else hot_behind(samples[-1]),
        fell_short=most_that_fell_short(took, room) if interval > 0 else 0,
    )


# ---- The running micro-batch. It shows a flood as it begins; its commit would show it when the rows have
# already waited. A batch that takes no longer than it should is not looked at: its commit comes soon enough.

LONG_MS = 10_000
"""A batch of a query without a trigger interval is long from this duration on."""
_LONGER = 2
"""Such a batch also has to take this multiple of the last ones."""
LEAST_SAMPLES = 3
"""With fewer, what counts is how long the batch has run: the first ones of a run are slow."""
_FAR = 2
_FURTHEST = 10
"""The line is followed up to this multiple of the largest batch: beyond it, it may be far off."""


def is_far(took_ms: float, interval_ms: int) -> bool:
    """Return whether a batch takes far more than its interval, however little is known about others."""
    return 0 < _FAR * interval_ms < took_ms


def foreseen(query: QueryMetrics, batches: Batches, at: int) -> Sample | None:
    """Return the running micro-batch as it will be committed, None if it is not long or is unknown.

    A limited one is long if it would be without its limit.
    """
    running, interval, last = query.running, query.facts.trigger_ms, query.latest
    if running is None or not running.input_rows or running.gap_ms is None:
        return None
    least = float(interval)
    if interval == 0:
        usual = median(one.duration_ms for one in query.samples) if query.samples else 0
        least = max(LONG_MS, _LONGER * usual)
    slots, partitions = max(1, query.slots), query.partitions or 0
    # In whole intervals, so that not every decision has to look at it anew.
    each = interval or LONG_MS
    took = float((at - running.at) // each * each)
    model, is_long = batches.lasting.model, took >= least
    is_known = model is not None and model.samples >= LEAST_SAMPLES
    if model is not None and (is_known or (last is not None and is_far(last.duration_ms, interval))):
        rows, busy = running.input_rows, kept_busy(partitions or slots, slots)
        all_rows = rows + (running.behind or 0)
        if is_long or model.batch_ms(all_rows, busy) >= least:
            most = _FURTHEST * batches.lasting.most_rows
            is_long = is_long or model.batch_ms(min(all_rows, most), busy) >= least
            took = max(took, model.batch_ms(min(rows, most), busy))
    if not is_long:
        return None
    return Sample(
        duration_ms=round(took), gap_ms=running.gap_ms, input_rows=running.input_rows,
        partitions=partitions, slots=slots, at=running.at, started=running.at, behind=running.behind,
        steady=False,
    )  # fmt: skip


class Basis(NamedTuple):
    """What the need of a query follows from; as long as it is the same, so are the findings about the query.

    `current` is the number of slots that it has, or was granted. An executor is ready `ready_ms` after its
    request. The other fields are as in its view.
    """

    batches: Batches
    current: int
    partitions: int | None
    movable: bool
    pauses_ms: tuple[int, ...]
    ready_ms: float

    @classmethod
    def of(cls, query: QueryMetrics, batches: Batches, current: int, ready_ms: float) -> Basis:
        """Take from the view of a query what counts in addition to its `batches`."""
        return cls(batches, current, query.partitions, query.movable, query.pauses_ms, ready_ms)


# ---- Where more executors cannot help: few source tasks, a step that made batches slower, a fixed count. Nor
# do they help if memory is short and not cores, or if one task holds up all others.


@frozen(kw_only=True)
class Bottleneck:
    """More than `slots` do not help, for this `reason` with these `numbers`."""

    slots: int
    reason: str
    numbers: Mapping[str, Number] = field(factory=dict)


def bottleneck(basis: Basis) -> Bottleneck | None:
    """Find what limits the slots that a query can use, None if nothing known does."""
    known = basis.batches.lasting
    limits = (
        _source_tasks(basis.batches, known.source_tasks),
        _hot_input(basis.batches, known.hot_input),
        _fixed_count(basis),
        _worse(known.worse),
        _memory(known.pressure, basis.current),
        _skew(known.skew, basis.current),
    )
    found = [limit for limit in limits if limit is not None]
    return min(found, key=lambda limit: limit.slots) if found else None


def _source_tasks(batches: Batches, tasks: int | None) -> Bottleneck | None:
    """Find that a query without a shuffle is read with the most tasks that its sources can have."""
    if tasks is None or not _reads_alone(batches):
        return None
    return Bottleneck(slots=tasks, reason="autoscale_source_tasks", numbers={"tasks": tasks})


def _hot_input(batches: Batches, hot: Hot | None) -> Bottleneck | None:
    """Find that one task, with a full partition, reads most of the rows of a query without a shuffle."""
    if hot is None or not _reads_alone(batches):
        return None
    return Bottleneck(slots=hot.useful, reason="autoscale_hot_partition", numbers=hot.numbers)


def _reads_alone(batches: Batches) -> bool:
    """Return whether a query has no shuffle, and more slots give its sources no more tasks."""
    samples = batches.samples
    if batches.facts.stateful or any(sample.work is not None for sample in samples):
        return False
    whole = bool(samples) and samples[-1].whole
    return Reading(batches.facts.sources, batches.settings.divide_ordered, None).is_fixed(whole)


def _worse(worse: Worse | None) -> Bottleneck | None:
    """Find that a step up has made batches slower, so it is reverted."""
    if worse is None:
        return None
    numbers: dict[str, Number] = {
        "more": worse.more,
        "before_ms": worse.before_ms,
        "after_ms": worse.after_ms,
    }
    return Bottleneck(slots=worse.slots, reason="autoscale_made_worse", numbers=numbers)


def _memory(pressure: Pressure | None, current: int) -> Bottleneck | None:
    """Find that memory is short: the query keeps its slots, since it may need the heaps of its executors."""
    if pressure is None:
        return None
    numbers: dict[str, Number] = {
        "lost_percent": round(100 * pressure.share),
        "gc_percent": round(100 * pressure.gc_share),
        "spilled_bytes": pressure.spilled_bytes,
    }
    return Bottleneck(slots=current, reason="autoscale_memory", numbers=numbers)


def _skew(skew: Skew | None, current: int) -> Bottleneck | None:
    """Find that one task holds up the others; more slots than are useful beside it do not help.

    No slots are given back for that: the stages that read the sources may use more.
    """
    if skew is None:
        return None
    numbers: dict[str, Number] = {"longest_ms": skew.longest_ms, "median_ms": skew.median_ms}
    return Bottleneck(slots=max(current, skew.useful), reason="autoscale_skew", numbers=numbers)


def _fixed_count(basis: Basis) -> Bottleneck | None:
    if basis.movable or not basis.partitions:
        return None
    numbers: dict[str, Number] = {"partitions": basis.partitions}
    return Bottleneck(slots=basis.partitions, reason="autoscale_fixed_count", numbers=numbers)
