"""How long a micro-batch takes: a fixed part, and a part that grows with its rows and shrinks with its slots.

    time(rows, slots) = fixed + row · rows / slots

Planning, offsets and commit do not shrink with slots, which is what makes a linear rule overshoot. The line
is Tukey's resistant line: the slope goes through the medians of the lower and the upper third of what was
measured, ordered by rows per slot, so that a few odd batches on either side move nothing. Then it is scaled
to what the last batches took. Batches of one size cannot tell the parts apart: then a usual fixed part is
taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from attrs import frozen

from spark_elastic.core.policies.view import Sample
from spark_elastic.core.rescale.gain import BASE_MS, OVERHEAD_MS

_USUAL_FIXED_MS = BASE_MS + OVERHEAD_MS["rocksdb"]
_MOST_GUESSED = 0.5
"""The most of a batch that is taken for its fixed part unmeasured, so that a guess never explains all."""
_SPREAD = 1.3
"""How far apart the thirds have to be, in rows per slot, to tell the parts apart."""
_LATEST = 5
_JUDGED = 15
_ENOUGH = 3


@frozen(kw_only=True)
class BatchTime:
    """The fitted line: `fixed_ms` per batch and `row_ms` of one slot for each row.

    It rests on so many `samples`; `error` is their typical relative distance from it (0 and up). `separates`
    says that both parts were measured; else `fixed_ms` is what is usual.
    """

    fixed_ms: float
    row_ms: float
    samples: int
    error: float
    separates: bool

    def batch_ms(self, rows: float, slots: float) -> float:
        """Estimate what a batch of so many rows takes on so many slots (above 0)."""
        return self.fixed_ms + self.row_ms * rows / slots

    @property
    def confidence(self) -> float:
        """How far the line can be trusted: from 0 to 1, by how many samples it has and how near they are."""
        many = self.samples / (self.samples + _ENOUGH)
        return many / (1 + self.error) * (1.0 if self.separates else 0.7)


def fit(samples: Sequence[Sample]) -> BatchTime | None:
    """Fit the line to micro-batches, the newest last; None without one that has read rows."""
    known = points(samples)
    if not known:
        return None
    line = _line(sorted(known))
    fixed, row = _guessed(known[-_LATEST:]) if line is None else line
    scale = median(took / (fixed + row * load or 1.0) for load, took in known[-_LATEST:])
    fixed, row = fixed * scale, row * scale
    error = median(abs(took - fixed - row * load) / took for load, took in known[-_JUDGED:])
    return BatchTime(fixed_ms=fixed, row_ms=row, samples=len(known), error=error, separates=line is not None)


def points(samples: Sequence[Sample]) -> tuple[tuple[float, float], ...]:
    """Return rows for each busy slot, and duration (ms), of the micro-batches that tell what batches take."""
    read = [sample for sample in samples if sample.input_rows > 0 and sample.duration_ms > 0]
    # While slots change with each batch, those that did not run with the same ones all the time have to do.
    used = [sample for sample in read if sample.steady] or read
    return tuple((sample.rows_per_batch / sample.parallelism, float(sample.duration_ms)) for sample in used)


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Lay the resistant line through points in order; None where they tell no slope."""
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
