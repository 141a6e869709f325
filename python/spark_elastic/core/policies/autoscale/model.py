"""How long a micro-batch takes: a fixed part, and a part that grows with its rows and shrinks with its slots.

    time(rows, slots) = fixed + row · rows / slots

Planning, offsets and commit do not shrink with slots, which makes a linear rule overshoot. The line is
Tukey's resistant line: its slope goes through the medians of the lower and the upper third of the
measurements, ordered by rows per slot, so a few odd batches on either side move nothing. It is then scaled
to the durations of the last batches. Batches of one size cannot tell the parts apart; the fixed part is then
assumed to have its usual size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from operator import mul
from statistics import median

from attrs import field, frozen

from spark_elastic.core.policies.view import Sample
from spark_elastic.core.rescale.gain import BASE_MS, OVERHEAD_MS

_USUAL_FIXED_MS = BASE_MS + OVERHEAD_MS["rocksdb"]
_MOST_GUESSED = 0.5
"""The largest part of a batch that is assumed to be fixed, so that a guess never explains all of it."""
_SPREAD = 1.3
"""The least ratio between the outer thirds, in rows per slot, that tells the parts apart."""
_LATEST = 5
_JUDGED = 15
_ENOUGH = 3


@frozen(kw_only=True)
class BatchTime:
    """The fitted line: `fixed_ms` per batch, and `row_ms` of one slot per row.

    It rests on a number of `samples`; `error` is their typical relative distance from it (0 and up).
    `separates` says that both parts were measured; otherwise `fixed_ms` is the usual one.
    """

    fixed_ms: float
    row_ms: float
    samples: int
    error: float
    separates: bool

    def batch_ms(self, rows: float, slots: float) -> float:
        """Estimate the duration of a batch of `rows` on `slots` (above 0)."""
        return self.fixed_ms + self.row_ms * rows / slots

    @property
    def confidence(self) -> float:
        """How far the line can be trusted (0 to 1), by the number of samples and their distance from it."""
        many = self.samples / (self.samples + _ENOUGH)
        return many / (1 + self.error) * (1.0 if self.separates else 0.7)


def fit(samples: Sequence[Sample]) -> BatchTime | None:
    """Fit the line to micro-batches, the newest last; None if none of them has read rows."""
    known = points(samples)
    if not known:
        return None
    line = _line(sorted(known))
    fixed, row = _guessed(known[-_LATEST:]) if line is None else line
    scale = median(took / (fixed + row * load or 1.0) for load, took in known[-_LATEST:])
    fixed, row = fixed * scale, row * scale
    error = median(abs(took - fixed - row * load) / took for load, took in known[-_JUDGED:])
    return BatchTime(fixed_ms=fixed, row_ms=row, samples=len(known), error=error, separates=line is not None)


def points(samples: Sequence[Sample]) -> Sequence[tuple[float, float]]:
    """Return rows per busy slot, and duration (ms), of the micro-batches that show how long batches take."""
    read = [sample for sample in samples if sample.input_rows > 0 and sample.duration_ms > 0]
    # If slots change with each batch, those that did not run with the same slots throughout have to do.
    used = [sample for sample in read if sample.steady] or read
    return [(sample.rows_per_batch / sample.parallelism, float(sample.duration_ms)) for sample in used]


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Fit the resistant line to points in order; None if they show no slope."""
    third = len(points) // 3
    if third < 1:
        return None
    low, high = points[:third], points[-third:]
    near, far = median(x for x, _ in low), median(x for x, _ in high)
    if far < near * _SPREAD:
        return None
    row = (median(y for _, y in high) - median(y for _, y in low)) / (far - near)
    if row <= 0:
        return None
    return max(0.0, median(y - row * x for x, y in points)), row


def _guessed(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    took = median(y for _, y in points)
    fixed = min(_USUAL_FIXED_MS, _MOST_GUESSED * took)
    return fixed, (took - fixed) / median(x for x, _ in points)


# The slots that an objective needs, given the load that a batch may put on its interval, and the lag.
# A query with a trigger interval reads the rows of one interval with each batch, so the batch has to finish
# within a part of it. A query without one always runs a batch, which grows until it keeps up: what has to fit
# is the part that grows with rows. If a source is read with a limit, the rows of a batch are given, and it
# has to fit into the time in which the same number of rows arrives.


_LEAST_ROOM = 0.25
"""The room to assume, as a multiple of the fixed part, if that leaves less: more slots would buy little."""

_LEAST_BUSY = 0.01
"""The least arrival rate to plan for, as a part of the capacity: with a load of 1, none would be left."""


@frozen(kw_only=True)
class Objective:
    """The objective: `load` (0 to 1) of `interval_ms`, 0 without one; and `max_lag_ms`, None for any lag."""

    interval_ms: int
    load: float
    max_lag_ms: int | None = None

    def room_ms(self, load: float) -> float:
        """Return how long a batch may take with this load, at most what the lag allows."""
        room = load * self.interval_ms
        if self.max_lag_ms is None or self.max_lag_ms <= self.interval_ms:
            return room  # a row may have to wait for a whole interval, which no slot shortens
        return min(room, self.max_lag_ms - self.interval_ms)

    def busy(self, load: float, fixed_ms: float) -> float:
        """Return the arrival rate that a query without an interval may have, as a part of its capacity.

        A batch takes fixed / (1 - part), and a row waits for one batch and is in the next.
        """
        if self.max_lag_ms is None:
            return load
        return min(load, max(1 - load, _LEAST_BUSY, 1 - 2 * fixed_ms / self.max_lag_ms))


@frozen(kw_only=True)
class Needed:
    """The `slots` that are needed, not rounded.

    `fixed` says that the fixed part leaves too little room for more slots to help. `admits` is False if the
    source's limit admits less than arrives, however many slots there are.
    """

    slots: float
    fixed: bool = False
    admits: bool = True

    @property
    def whole(self) -> int:
        """The slots, rounded up; rounding errors above a whole number are ignored."""
        return max(1, math.ceil(self.slots - 1e-6))


def needed(
    model: BatchTime,
    objective: Objective,
    rows_per_ms: float,
    *,
    load: float,
    batch_rows: float | None = None,
) -> Needed:
    """Compute the slots with which a query keeps its objective at this load.

    `batch_rows` are the rows of a batch if a limit of the source fixes them, None for the rows that arrive.
    """
    if rows_per_ms <= 0:
        return Needed(slots=1)
    interval = objective.interval_ms
    admits = True
    if batch_rows is not None and batch_rows < rows_per_ms * interval:
        admits, rows, room = False, batch_rows, objective.room_ms(load)
    elif interval > 0:
        rows, room = rows_per_ms * interval, objective.room_ms(load)
    elif batch_rows is not None:
        rows, room = batch_rows, load * batch_rows / rows_per_ms
    else:
        return Needed(slots=model.row_ms * rows_per_ms / objective.busy(load, model.fixed_ms))
    left, least = room - model.fixed_ms, max(1.0, _LEAST_ROOM * model.fixed_ms)
    return Needed(slots=model.row_ms * rows / max(left, least), fixed=left < least, admits=admits)


def load_with(model: BatchTime, objective: Objective, rows_per_ms: float, slots: float) -> float:
    """Estimate the load of a query with `slots` (above 0)."""
    if objective.interval_ms == 0:
        return model.row_ms * rows_per_ms / slots
    return model.batch_ms(rows_per_ms * objective.interval_ms, slots) / objective.interval_ms


# ---- The room above the arrival rate: as much as the rate varies, and as it grows until executors come. A
# constant would be too much for a steady load and too little for one that jumps. What counts is how far the
# rates of the last micro-batches lie from the line through them, and the slope of that line.


_LEAST, _MOST = 0.08, 0.25
_DEVIATIONS = 2.0
_ENOUGH_BATCHES = 6
_NEAR = 0.6
"""A rate below this part of the one before it, or after it, marks a jump."""
_SURE = 3.0
"""A slope counts from this multiple of its standard error on: less is noise."""


@frozen(kw_only=True)
class Variation:
    """How rates vary: `spread` is the standard deviation as a part of the rate, from 0 on.

    `growth` is the change of the rate per ms, as a part of it; negative if it falls, 0 if not significant.
    """

    spread: float = 0.0
    growth: float = 0.0

    @property
    def load(self) -> float:
        """The load that leaves room for all but the rarest micro-batches to be in time (0 to 1)."""
        return 1 / (1 + min(_MOST, max(_LEAST, _DEVIATIONS * self.spread)))


def variation(rates: Sequence[float], times: Sequence[int]) -> Variation:
    """Fit a line to rates (rows per ms) at `times` (ms); too few of them show no variation."""
    begin = _after_last_leap(rates)
    rates, times = rates[begin:], times[begin:]
    count = len(rates)
    mean = sum(rates) / count if count else 0.0
    if count < _ENOUGH_BATCHES or mean <= 0:
        return Variation()
    middle = sum(times) / count
    apart, off = [time - middle for time in times], [rate - mean for rate in rates]
    squares = sum(map(mul, apart, apart))
    slope = sum(map(mul, apart, off)) / squares if squares else 0.0
    left = max(0.0, sum(map(mul, off, off)) - slope * slope * squares)
    deviation = sqrt(left / (count - 2))
    sure = squares > 0 and abs(slope) * sqrt(squares) > _SURE * deviation
    return Variation(spread=deviation / mean, growth=slope / mean if sure else 0.0)


def _after_last_leap(rates: Sequence[float]) -> int:
    """Return the index of the first rate after the last jump, since a jump says nothing about variation."""
    for place in range(len(rates) - 1, 0, -1):
        before, after = rates[place - 1], rates[place]
        if before < _NEAR * after or after < _NEAR * before:
            return place
    return 0


# ---- The arrival rate, and the backlog. The rate counts the rows that the source *gained*, if it reports how
# many it has (latest offsets): the rows read, plus the growth of the rows behind. The rows read alone say
# nothing about a source that is read with a limit.


_RECENT_MS = 30_000
_LEAST_BATCHES = 3
_MOST_GROWTH = 1.2
_MOST_AT_ONCE, _MOST_OF_A_FLOOD = 3.0, 10.0
"""A batch counts at most this multiple of the usual rate: more is one burst, or shows again in the next."""


@frozen(kw_only=True)
class Inflow:
    """The arrival rate, in rows per ms.

    `behind` is the number of rows that wait in the sources, None if no source reports it. `grows` says that
    it has risen with each of the last batches. `limited` says that the batches are as large as a limit of the
    source allows; `batch_rows` is then that size. A limit that a policy has set does not count, since it
    depends on the speed of batches. `variation` is how the rate varies.
    """

    rows_per_ms: float
    behind: int | None = None
    grows: bool = False
    limited: bool = False
    batch_rows: float = 0.0
    variation: Variation = field(factory=Variation)

    def rows_per_ms_in(self, ms: float) -> float:
        """Return the arrival rate after `ms` if it keeps growing; a falling rate still counts in full."""
        return self.rows_per_ms * min(_MOST_GROWTH, 1 + max(0.0, self.variation.growth) * ms)


def inflow(samples: Sequence[Sample], interval_ms: int, *, throttled: bool = False) -> Inflow | None:
    """Estimate the arrival rate from the last micro-batches, None while it is unknown.

    `interval_ms` is that of the trigger, 0 without one. Two batches with a time between them are needed. The
    batches of a query that is `throttled` by a policy are as large as that allows: their sizes show the
    limit, not the input.
    """
    recent = _recent(samples)
    before: tuple[Sample | None, ...] = (None, *samples)[-len(recent) - 1 : -1]
    came = [pair for pair in zip(before, recent, strict=True) if pair[1].gap_ms is not None]
    if not came:
        return None
    gaps = [after.gap_ms or 0 for _, after in came]
    rows = [_arrived(before, after) for before, after in came]
    waits = [sample.behind for sample in samples[-_LEAST_BATCHES:]]
    known = [behind for behind in waits if behind is not None]
    complete = len(known) == _LEAST_BATCHES
    earlier, last = came[-1]
    alike = earlier is not None and earlier.rows_per_batch == last.rows_per_batch
    short = bool(last.behind) and earlier is not None and (alike or bool(earlier.behind))
    flooded = interval_ms > 0 and (
        bool(last.behind) if throttled else interval_ms < last.duration_ms and not last.behind
    )
    return Inflow(
        rows_per_ms=_rate(rows, gaps, flooded=flooded),
        behind=last.behind,
        grows=complete and known[0] < known[1] < known[2],
        limited=short and not throttled,
        batch_rows=last.rows_per_batch,
        variation=_variation(samples),
    )


def _variation(samples: Sequence[Sample]) -> Variation:
    """Return how the arrival rate has varied over the micro-batches that are known."""
    rates, times = [], []
    for before, after in pairwise(samples):
        if after.gap_ms is not None:
            rates.append(max(0, _arrived(before, after)) / after.gap_ms)
            times.append(after.started)
    return variation(rates, times)


def _rate(rows: Sequence[int], gaps: Sequence[int], *, flooded: bool) -> float:
    """Compute the rate in rows per ms: that of all these batches or, if higher, of the last ones.

    Rows that arrive all at once are a backlog and no rate: they show as rows behind, or were read by one
    batch. Only if a source without a limit has `flooded` a batch, the next one reads all that arrives
    meanwhile; so then the last rate counts, up to a higher multiple. If only some batches have rows, as with
    files, those are compared with each other, and the last ones say nothing.
    """
    usual = [came / gap for came, gap in zip(rows, gaps, strict=True) if came > 0]
    if not usual:
        return 0.0
    most = (_MOST_OF_A_FLOOD if flooded else _MOST_AT_ONCE) * median(usual)
    counted = [max(0.0, min(came, most * gap)) for came, gap in zip(rows, gaps, strict=True)]
    mean = sum(counted) / sum(gaps)
    if len(usual) < len(rows):
        return mean
    last = -1 if flooded else -2
    return max(mean, sum(counted[last:]) / sum(gaps[last:]))


def _arrived(before: Sample | None, after: Sample) -> int:
    """Count the rows that the sources gained from the planning of `before` to that of `after`.

    If that is unknown, it is the rows that were read.
    """
    if before is None or before.behind is None or after.behind is None:
        return after.input_rows
    return after.input_rows + after.behind - before.behind


def _recent(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Return the batches of the last 30 s, and at least three."""
    if not samples:
        return ()
    since = samples[-1].at - _RECENT_MS
    count = sum(sample.at > since for sample in samples)
    return samples[-max(count, _LEAST_BATCHES) :]


# ---- The backlog: whether there is one, how fast it should shrink, and when it will be gone.


_LEAST_MS = 10_000
"""Fewer rows than arrive in this time are no backlog: a batch was slightly late."""


@frozen(kw_only=True)
class Backlog:
    """The `rows` to process within `within_ms`, in addition to those that arrive."""

    rows: float
    within_ms: int

    def slots(self, model: BatchTime, inflow: Inflow, objective: Objective) -> float:
        """Compute the slots that process the backlog in time.

        A source that is read with a limit admits no more than that per interval; batches that take longer
        than their interval follow each other at once.
        """
        rate = inflow.rows_per_ms + self.rows / self.within_ms
        if not inflow.limited:
            return model.row_ms * rate
        if objective.interval_ms > 0:
            rate = min(rate, inflow.batch_rows / objective.interval_ms)
        if rate <= 0:
            return 1.0
        left = inflow.batch_rows / rate - model.fixed_ms
        return model.row_ms * inflow.batch_rows / max(left, _LEAST_ROOM * model.fixed_ms, 1.0)

    def gone_in_ms(
        self, model: BatchTime, inflow: Inflow, objective: Objective, slots: float
    ) -> float | None:
        """Forecast the time until nothing is behind, None if these slots never get there."""
        capacity = _capacity(model, inflow, objective, slots)
        left = capacity - inflow.rows_per_ms
        return self.rows / left if left > 0 else None


def rows_waiting(inflow: Inflow, latest: Sample, objective: Objective, *, runs: bool) -> float:
    """Count the rows that wait beyond those that one batch reads anyway, after the `latest` batch.

    A source without a limit is read completely, so none of its rows are behind. Rows that arrived while a
    batch took longer than its interval wait all the same. If the latest batch still `runs`, all of its own
    rows wait.
    """
    behind, interval = inflow.behind or 0, objective.interval_ms
    if runs:
        return behind + max(0.0, latest.input_rows - inflow.rows_per_ms * interval)
    overrun = max(0, latest.duration_ms - interval) if interval > 0 else 0
    return behind + inflow.rows_per_ms * overrun


def backlog(
    waiting: float, inflow: Inflow, objective: Objective, catch_up_ms: int, *, grows: float = 0.0
) -> Backlog | None:
    """Return the backlog if this many rows are `waiting`, None if negligible.

    It `grows` by this many rows until more slots could be there. Catching up in less than two intervals would
    call for more executors in vain.
    """
    intervals = 2 * objective.interval_ms
    negligible, within = intervals, catch_up_ms
    if objective.max_lag_ms is not None:
        # A row waits for its interval and its batch as well.
        negligible = min(intervals, objective.max_lag_ms - intervals)
        within = min(catch_up_ms, max(objective.max_lag_ms - objective.interval_ms, intervals))
    if waiting + grows <= inflow.rows_per_ms * max(_LEAST_MS, negligible):
        return None
    return Backlog(rows=waiting + grows, within_ms=within)


def growth(model: BatchTime, inflow: Inflow, objective: Objective, *, slots: float, ready_ms: float) -> float:
    """Count the rows that arrive in `ready_ms` and that these slots do not process meanwhile."""
    return max(0.0, inflow.rows_per_ms - _capacity(model, inflow, objective, slots)) * ready_ms


def _capacity(model: BatchTime, inflow: Inflow, objective: Objective, slots: float) -> float:
    """Return the most rows that can be processed per ms."""
    if inflow.limited:
        took = max(model.batch_ms(inflow.batch_rows, slots), objective.interval_ms)
        return inflow.batch_rows / max(1.0, took)
    # Batches grow until they take up all the time.
    return slots / model.row_ms if model.row_ms > 0 else float("inf")
