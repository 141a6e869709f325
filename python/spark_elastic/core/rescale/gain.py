"""The estimated duration of a micro-batch with another number of partitions.

P partitions on S slots run in ``ceil(P / S)`` waves, and a wave takes the fixed cost of one partition plus
its share of the work:

    time(P, S) = base + waves * (overhead + work / P)

The base is measured apart, as the batch without its stages that read a shuffle: what the driver does in a
batch, such as a `foreachBatch` that calls a service, does not get faster with more partitions. The overhead
of a state partition (open, load, commit, upload) is what makes 200 partitions of a small state ruinous.

The three parameters start with defaults and are fitted so that the last measurement is met exactly. One batch
cannot separate overhead from work. With one wave the overhead is taken as known and the rest is work; with
many waves the work is taken as known and the rest is overhead.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add
from statistics import median

from attrs import define, field, frozen

from spark_elastic.core.events import Provider, StageCompleted, StageWork

BASE_MS = 100.0
"""Planning, log writes and commit of one batch, independent of its partitions, until measured."""

OVERHEAD_MS = {"rocksdb": 80.0, "hdfs": 45.0, "other": 45.0}
"""Cost of one partition's task without any data, by state store provider."""

WORK_MS = 250.0
"""Cost of a batch's data on one core, until measured."""

_OVERHEAD_RANGE = (0.25, 2.0)
_SAMPLES = 5
_POINTS = 8
_STAGES = 16
_SIMILAR_LOAD = 1.5


@frozen(kw_only=True)
class Point:
    """The last batches measured with one pair of partitions and slots.

    `batch_ms` is their typical duration: the median, which one slow batch does not move. `base_ms` is the
    remainder without their stages, or the default if no stage was reported: then it `is_guessed`. `waves` is
    how often all slots are filled in one batch.
    """

    partitions: int
    slots: int
    durations_ms: tuple[int, ...]
    stages_ms: tuple[int, ...] = ()
    rows: int
    # Derived from the fields above, once: each fit asks for them several times.
    batch_ms: float = field(init=False, eq=False)
    base_ms: float = field(init=False, eq=False)
    waves: int = field(init=False, eq=False)

    @batch_ms.default
    def _batch_ms(self) -> float:
        return float(median(self.durations_ms))

    @base_ms.default
    def _base_ms(self) -> float:
        return BASE_MS if self.is_guessed else max(0.0, self.batch_ms - median(self.stages_ms))

    @waves.default
    def _waves(self) -> int:
        return waves(self.partitions, self.slots)

    @property
    def is_guessed(self) -> bool:
        """Whether no stages of these batches were reported."""
        return not self.stages_ms


@define
class Measurements:
    """The measurements, the most recent pair of partitions and slots last; bounded.

    `stages` are those of batches that have not been added yet.
    """

    points: list[Point] = field(factory=list)
    stages: list[StageCompleted] = field(factory=list)

    def add_stage(self, stage: StageCompleted) -> None:
        """Record a stage of a batch. A stage reported after its batch, by another thread, is not used."""
        self.stages.append(stage)
        del self.stages[:-_STAGES]

    def work(self, batch: int) -> StageWork | None:
        """Add up the work of the tasks of a batch that has not been added yet, None if unknown."""
        known = [stage.work for stage in self.stages if stage.batch == batch and stage.work is not None]
        return reduce(add, known) if known else None

    def add(self, *, batch: int, partitions: int, slots: int, duration_ms: int, rows: int) -> None:
        """Record one batch."""
        stages = sum(s.duration_ms for s in self.stages if (s.batch, s.tasks) == (batch, partitions))
        self.stages = [stage for stage in self.stages if stage.batch > batch]
        durations: tuple[int, ...] = (duration_ms,)
        stages_ms: tuple[int, ...] = (min(stages, duration_ms),) if stages else ()
        for place, point in enumerate(self.points):
            if point.partitions == partitions and point.slots == slots:
                durations = (*point.durations_ms[1 - _SAMPLES :], *durations)
                stages_ms = (*point.stages_ms, *stages_ms)[-_SAMPLES:]
                del self.points[place]
                break
        self.points.append(
            Point(partitions=partitions, slots=slots, durations_ms=durations, stages_ms=stages_ms, rows=rows)
        )
        del self.points[:-_POINTS]

    @property
    def slots(self) -> tuple[int, ...]:
        """The numbers of slots that batches were measured with, the latest one last."""
        return tuple(point.slots for point in self.points)

    @property
    def latest(self) -> Point | None:
        """The pair of partitions and slots that was measured last."""
        return self.points[-1] if self.points else None


@frozen(kw_only=True)
class BatchModel:
    """The fitted parameters, in milliseconds."""

    base_ms: float
    overhead_ms: float
    work_ms: float

    def batch_ms(self, partitions: int, slots: int) -> float:
        """Estimate the duration of one batch."""
        return self.base_ms + waves(partitions, slots) * (self.overhead_ms + self.work_ms / partitions)

    def best_partitions(self, slots: int, upper: int, tolerance: float, seen: Iterable[int] = ()) -> int:
        """Choose among the counts whose batch takes at most 1 + `tolerance` times as long as the fastest.

        One partition per slot is the fastest: fewer leave slots empty, more add overhead and no slot. If
        other numbers of slots were `seen`, the result is the count that serves those best, else the smallest
        one.
        """
        fastest = min(slots, upper)
        allowed = self.batch_ms(fastest, slots) * (1 + tolerance) - self.base_ms - self.overhead_ms
        # With one wave, time falls as 1 / P, so the smallest count can be computed; the rest is rounding.
        smallest = max(1, min(fastest, int(self.work_ms / allowed))) if allowed > 0 else fastest
        while smallest < fastest and self.work_ms / smallest > allowed:
            smallest += 1
        others = {other for other in seen if other != slots}
        # The best count for another number of slots fills them a whole number of times, or is an extreme.
        aligned = {fastest // other * other for other in others}
        candidates = {smallest, fastest, *(count for count in aligned if count >= smallest)}

        def fit_of(count: int) -> tuple[float, int]:
            # Their base is the same for each count.
            together = sum(waves(count, other) for other in others)
            return together * (self.overhead_ms + self.work_ms / count), count

        return min(candidates, key=fit_of)


def waves(partitions: int, slots: int) -> int:
    """Return how often `slots` must be filled to run `partitions` tasks."""
    return -(-partitions // slots)


def fit(measurements: Measurements, provider: Provider) -> BatchModel:
    """Fit the model to the measurements; without any it has the defaults."""
    usual = OVERHEAD_MS[provider]
    latest = measurements.latest
    if latest is None:
        return BatchModel(base_ms=BASE_MS, overhead_ms=usual, work_ms=WORK_MS)
    if latest.waves == 1:
        return _with_work(latest, _known_overhead(measurements, latest, usual))
    work = _known_work(measurements, latest, usual)
    overhead = (latest.batch_ms - latest.base_ms) / latest.waves - work / latest.partitions
    return _with_work(latest, _sane(overhead, usual))


def _with_work(point: Point, overhead_ms: float) -> BatchModel:
    """Attribute to work what base and overhead leave over.

    A batch faster than those two has no work: its overhead, and a guessed base, are lowered instead.
    """
    base, overheads = point.base_ms, point.waves * overhead_ms
    rest = point.batch_ms - base - overheads
    if rest < 0:
        if point.is_guessed:
            base *= point.batch_ms / (base + overheads)
        return BatchModel(base_ms=base, overhead_ms=(point.batch_ms - base) / point.waves, work_ms=0.0)
    return BatchModel(base_ms=base, overhead_ms=overhead_ms, work_ms=rest * point.partitions / point.waves)


def _known_overhead(measurements: Measurements, latest: Point, usual: float) -> float:
    """Compute the overhead from an earlier point with several waves, where it has the most weight."""
    for point in reversed(measurements.points):
        if point.waves > 1 and _similar(point, latest):
            # Two equations, two unknowns: overhead and work.
            share, other_share = latest.waves / latest.partitions, point.waves / point.partitions
            determinant = latest.waves * other_share - point.waves * share
            if determinant:
                rest, other_rest = latest.batch_ms - latest.base_ms, point.batch_ms - point.base_ms
                return _sane((rest * other_share - other_rest * share) / determinant, usual)
    return usual


def _known_work(measurements: Measurements, latest: Point, usual: float) -> float:
    """Compute the work from an earlier point with one wave, where it has the most weight."""
    for point in reversed(measurements.points):
        if point.waves == 1 and _similar(point, latest):
            return _with_work(point, usual).work_ms
    return WORK_MS


def _similar(one: Point, other: Point) -> bool:
    low, high = sorted((max(one.rows, 1), max(other.rows, 1)))
    return high <= low * _SIMILAR_LOAD


def _sane(overhead: float, usual: float) -> float:
    low, high = _OVERHEAD_RANGE
    return min(max(overhead, usual * low), usual * high)
