"""What the micro-batches of a whole run have cost: the line that lies best through all of them.

The line of the policy `autoscale` (`core/policies/autoscale/model.py`) goes by the last ones, and by the
thirds with the fewest and the most rows for a slot. A policy that does its work keeps these alike, so that
thirds tell little. Here each two micro-batches give a slope, and the median counts, the more the further
apart they are (Theil's and Sen's estimator). Those that are far off, as on cold executors, are left out then.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from statistics import median

from attrs import evolve, frozen

from spark_elastic.core.policies.autoscale.model import fit
from spark_elastic.core.policies.view import Sample

# All pairs of these take a tenth of a second.
_MOST_POINTS = 400
# So many deviations are, where they are by chance, as many as the median of their amounts times this.
_DEVIATIONS = 1.4826
# Those further off, in deviations, are no chance: they are left out.
_FAR = 3.0


@frozen(kw_only=True)
class MeasuredCost:
    """What a micro-batch takes: `fixed_ms`, and `row_ms` of one slot for each row.

    `jitter` is the standard deviation of the logarithm of its duration.
    """

    fixed_ms: float
    row_ms: float
    jitter: float

    def off(self, load: float, took_ms: float) -> float:
        """Return the logarithm of what a micro-batch took by what one of so many rows for a slot takes."""
        return math.log(took_ms / (self.fixed_ms + self.row_ms * load))


def measured_cost(samples: Sequence[Sample]) -> MeasuredCost | None:
    """Measure micro-batches; None without one that has read rows."""
    usual = fit(samples)
    if usual is None:
        return None
    guess = MeasuredCost(fixed_ms=usual.fixed_ms, row_ms=usual.row_ms, jitter=0.0)
    known = sorted(_points(samples))
    found = _line(known, guess)
    near = [point for point in known if abs(found.off(*point)) <= _FAR * found.jitter]
    return _line(near, guess) if near else found


def _line(known: Sequence[tuple[float, float]], guess: MeasuredCost) -> MeasuredCost:
    """Lay the line through points in order; where they tell no slope it is the one that was guessed."""
    row_ms = _slope(known[:: -(-len(known) // _MOST_POINTS)])
    if row_ms is not None:
        fixed_ms = max(0.0, median(took - row_ms * load for load, took in known))
        guess = MeasuredCost(fixed_ms=fixed_ms, row_ms=row_ms, jitter=0.0)
    return evolve(guess, jitter=_DEVIATIONS * median(abs(guess.off(*point)) for point in known))


def _points(samples: Iterable[Sample]) -> Iterator[tuple[float, float]]:
    """Yield rows for each busy slot, and duration (ms), of micro-batches that ran with the same slots."""
    read = [sample for sample in samples if sample.input_rows > 0 and sample.duration_ms > 0]
    for sample in [sample for sample in read if sample.steady] or read:
        # As a simulated one takes (`batch_cost.py`): each wave of tasks as long as the others.
        tasks = max(1, sample.partitions)
        waves = -(-tasks // max(1, sample.slots))
        yield sample.rows_per_batch * waves / tasks, float(sample.duration_ms)


def _slope(known: Sequence[tuple[float, float]]) -> float | None:
    """Return the median slope between two points of those in order, None where it is not above 0."""
    slopes = [
        ((after - before) / (far - near), far - near)
        for (near, before), (far, after) in combinations(known, 2)
        if far > near
    ]
    slope = _weighted_median(slopes)
    return slope if slope > 0 else None


def _weighted_median(weighted: Iterable[tuple[float, float]]) -> float:
    """Return the value with half of the weight below it, 0 without one."""
    ordered = sorted(weighted)
    half, below = sum(weight for _, weight in ordered) / 2, 0.0
    for value, weight in ordered:
        below += weight
        if below >= half:
            return value
    return 0.0
