"""A scenario from a decision journal: its input, the cost of its micro-batches, and its executors.

The load is what the micro-batches have read and left, from one to the next. The costs are fitted to all
micro-batches of a query together; while others ran as well, a micro-batch had its share of the slots. What a
journal does not hold has its default.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from statistics import median

from attrs import evolve, frozen

from spark_elastic.core.events import PolicyFileChanged
from spark_elastic.core.keys.key import PREFIX
from spark_elastic.core.policies.autoscale.model import fit
from spark_elastic.core.policies.view import Sample
from spark_elastic.runtime.entries import Entry
from spark_elastic_lab.simulator.batches import BatchCost
from spark_elastic_lab.simulator.cluster import ClusterSpec
from spark_elastic_lab.simulator.heard import AsRecorded, Heard, HeardQuery, RecordedQuery, Said
from spark_elastic_lab.simulator.load import Load
from spark_elastic_lab.simulator.query import QuerySpec
from spark_elastic_lab.simulator.scenario import Scenario
from spark_elastic_lab.simulator.source import SourceSpec

# The cost of the micro-batches of a whole run: the line that fits them best. The model of the policy
# `autoscale` (`core/policies/autoscale/model.py`) uses the latest micro-batches, and the thirds with the
# fewest and the most rows per slot. A policy that works well keeps these alike, so thirds reveal little.
# Here, each pair of micro-batches gives a slope, and the result is their median, weighted by the distance of
# the pair (the Theil-Sen estimator). Outliers, such as on cold executors, are then left out.


# All pairs of this many points take a tenth of a second.
_MOST_POINTS = 400
# The factor from the median absolute deviation to the standard deviation of random errors.
_DEVIATIONS = 1.4826
# Points further off, in deviations, are not random: they are left out.
_FAR = 3.0


@frozen(kw_only=True)
class MeasuredCost:
    """The cost of a micro-batch: `fixed_ms`, plus `row_ms` of one slot for each row.

    `jitter` is the standard deviation of the logarithm of its duration.
    """

    fixed_ms: float
    row_ms: float
    jitter: float

    def off(self, load: float, took_ms: float) -> float:
        """Return the logarithm of a duration divided by the expected one for `load` rows per slot."""
        return math.log(took_ms / (self.fixed_ms + self.row_ms * load))


def measured_cost(samples: Sequence[Sample]) -> MeasuredCost | None:
    """Measure the cost of micro-batches; return None if none has read rows."""
    usual = fit(samples)
    if usual is None:
        return None
    guess = MeasuredCost(fixed_ms=usual.fixed_ms, row_ms=usual.row_ms, jitter=0.0)
    known = sorted(_points(samples))
    found = _line(known, guess)
    near = [point for point in known if abs(found.off(*point)) <= _FAR * found.jitter]
    return _line(near, guess) if near else found


def _line(known: Sequence[tuple[float, float]], guess: MeasuredCost) -> MeasuredCost:
    """Fit a line through points in order; if they have no usable slope, use the guess."""
    row_ms = _slope(known[:: -(-len(known) // _MOST_POINTS)])
    if row_ms is not None:
        fixed_ms = max(0.0, median(took - row_ms * load for load, took in known))
        guess = MeasuredCost(fixed_ms=fixed_ms, row_ms=row_ms, jitter=0.0)
    return evolve(guess, jitter=_DEVIATIONS * median(abs(guess.off(*point)) for point in known))


def _points(samples: Iterable[Sample]) -> Iterator[tuple[float, float]]:
    """Yield rows per busy slot, and duration (ms), of micro-batches that kept the same slots."""
    read = [sample for sample in samples if sample.input_rows > 0 and sample.duration_ms > 0]
    for sample in [sample for sample in read if sample.steady] or read:
        # As in the simulation's `BatchCost`: each wave of tasks takes as long as the others.
        tasks = max(1, sample.partitions)
        waves = -(-tasks // max(1, sample.slots))
        yield sample.rows_per_batch * waves / tasks, float(sample.duration_ms)


def _slope(known: Sequence[tuple[float, float]]) -> float | None:
    """Return the weighted median slope between pairs of the sorted points, or None if it is not above 0."""
    slopes = [
        ((after - before) / (far - near), far - near)
        for (near, before), (far, after) in combinations(known, 2)
        if far > near
    ]
    slope = _weighted_median(slopes)
    return slope if slope > 0 else None


def _weighted_median(weighted: Iterable[tuple[float, float]]) -> float:
    """Return the value with half of the weight below it, or 0 if there is none."""
    ordered = sorted(weighted)
    half, below = sum(weight for _, weight in ordered) / 2, 0.0
    for value, weight in ordered:
        below += weight
        if below >= half:
            return value
    return 0.0


_LEAST_MS = 60_000
_MOST_JITTER = 1.0


Span = tuple[int, int]
"""When a micro-batch began (epoch ms), and how long it took (ms)."""


class NothingRecordedError(ValueError):
    """No scenario can be made from a journal; the text says what is missing."""


def heard(entries: Iterable[Entry]) -> Heard:
    """Read the entries of a journal.

    Raises NothingRecordedError without a micro-batch with rows, or for a run of less than a minute.
    """
    found = Heard()
    for entry in entries:
        found.entry(entry)
    if not any(fit(query.samples) for query in found.queries.values()):
        raise NothingRecordedError("the journal has no micro-batch with rows: name one of a run with some")
    if found.now < _LEAST_MS:
        raise NothingRecordedError("the journal is shorter than a minute: name a longer one")
    return found


@frozen(kw_only=True)
class KnownCost:
    """The cost of a query's micro-batches, and the tasks of its source, from more than a journal holds."""

    cost: BatchCost
    source_tasks: int


def scenario_of(found: Heard, seed: int = 1, costs: Mapping[str, KnownCost] | None = None) -> Scenario:
    """Build a scenario from a journal, with the settings of its last run; skip queries without rows.

    `costs` has queries, by name, whose costs are known; those of others are measured.
    """
    read = [query for query in found.queries.values() if fit(query.samples) is not None]
    cores = found.cores.most_common(1)[0][0] if found.cores else 1
    # Until the application requests or releases executors, their number changes as recorded.
    unasked = found.there.until(min(found.scaled, found.now + 1) - 1)
    cluster = ClusterSpec(
        # A simulated executor has one slot per core.
        cores=max(1, found.task.slots(cores)),
        initial=found.initial,
        quota=max(64, *found.there.values),
        recorded=tuple(zip(unasked.times, unasked.values, strict=True)),
        startup_s=median(found.startups_ms) / 1_000 if found.startups_ms else ClusterSpec().startup_s,
    )
    queries = []
    known: dict[str, RecordedQuery] = {}
    for query in read:
        others = [other.samples for other in read if other is not query]
        samples = _with_own_slots(query.samples, others)
        spec = _spec(query, samples, found, cluster)
        told = (costs or {}).get(query.name)
        if told is not None:
            source = evolve(spec.source, partitions=told.source_tasks)
            spec = evolve(spec, cost=told.cost, source=source)
        queries.append(spec)
        known[query.name] = _recorded(query, queries[-1], samples, found.begin)
    return Scenario(
        queries=tuple(queries),
        cluster=cluster,
        settings=found.settings,
        recorded=AsRecorded(
            said=tuple(_said(found, known)),
            executors=tuple(zip(found.there.times, found.there.values, strict=True)),
            spark=_spark(found.spark),
            queries=known,
        ),
        hours=found.now / 3_600_000,
        seed=seed,
    )


def _said(found: Heard, known: Iterable[str]) -> Iterator[tuple[int, Said]]:
    """Yield the changes of bounds of the known queries, by their names."""
    for at, event in found.said:
        if isinstance(event, PolicyFileChanged):
            yield at, event
        elif event.query in found.queries and found.queries[event.query].name in known:
            yield at, evolve(event, query=found.queries[event.query].name)


def _spark(conf: Mapping[str, str]) -> dict[str, str]:
    """Leave out the needs of a task: a simulated executor has one slot per core."""
    of_tasks = ("spark.task.", "spark.executor.resource.")
    return {name: value for name, value in conf.items() if not name.startswith((*of_tasks, PREFIX))}


def _recorded(query: HeardQuery, spec: QuerySpec, samples: Iterable[Sample], begin: int) -> RecordedQuery:
    """Return the query's recorded properties; `samples` are its micro-batches with their own slots."""
    pace = [
        (
            sample.started - begin,
            sample.duration_ms
            / spec.batch_ms(round(sample.rows_per_batch), max(1, sample.partitions), sample.slots),
        )
        for sample in samples
        # If the slots changed during a micro-batch, the simulation computes the effect itself.
        if sample.input_rows and sample.duration_ms and sample.steady
    ]
    return RecordedQuery(
        facts=query.facts,
        begins=query.begins,
        ends=query.ends,
        start_ms=query.start_ms,
        ahead_ms=begin % max(1, spec.trigger_ms),
        pace=tuple(sorted(pace)),
    )


def _spec(query: HeardQuery, own: Sequence[Sample], found: Heard, cluster: ClusterSpec) -> QuerySpec:
    facts, samples = query.facts, query.samples
    move = {"move_s": query.pauses_ms, "copy_s": query.copies_ms} if facts.stateful else {}
    cost = measured_cost(own)
    assert cost is not None
    row_us = cost.row_ms * 1_000
    tasks = max((sample.source_tasks or 0 for sample in samples), default=0)
    if any(source.divisible and not source.ordered for source in facts.sources):
        tasks = cluster.quota * cluster.cores  # it is split into one part per slot
    return QuerySpec(
        name=query.name,
        load=load_of_samples(samples, found.begin, found.end),
        trigger_s=facts.trigger_ms / 1_000,
        stateful=facts.stateful,
        partitions=facts.checkpoint_partitions or facts.session_partitions,
        state_mb=query.state_bytes / 1e6,
        moves_state=facts.moves_state,
        source=_source(samples, tasks),
        cost=BatchCost(
            fixed_ms=cost.fixed_ms,
            task_ms=0,
            read_us=0 if query.shuffles else row_us,
            work_us=row_us if query.shuffles else 0,
            jitter=min(_MOST_JITTER, cost.jitter),
        ),
        **{name: median(took_ms) / 1_000 for name, took_ms in move.items() if took_ms},
    )


def _source(samples: Iterable[Sample], tasks: int) -> SourceSpec:
    """Return a source with the recorded partitions, or one per task; the fullest has its mean share."""
    told = [sample.fullest for sample in samples if sample.fullest is not None]
    partitions = max((one.partitions for one in told), default=0)
    if not told or tasks > partitions:  # nothing is known, or several tasks shared a partition
        return SourceSpec(**({"partitions": tasks} if tasks else {}))
    share = sum(one.rows for one in told) / sum(one.all_rows for one in told)
    return SourceSpec(partitions=partitions, hot=share)


def _with_own_slots(samples: Sequence[Sample], others: Sequence[Sequence[Sample]]) -> list[Sample]:
    """Return micro-batches with the slots that those of other queries left them."""
    shares = own_shares(_spans(samples), list(map(_spans, others)))
    return [
        evolve(sample, slots=max(1, round(sample.slots * share)))
        for sample, share in zip(samples, shares, strict=True)
    ]


def _spans(samples: Sequence[Sample]) -> list[Span]:
    return [(sample.started, sample.duration_ms) for sample in samples]


def own_shares(spans: Sequence[Span], others: Sequence[Sequence[Span]]) -> list[float]:
    """Return the share of the slots that each micro-batch had, while those of other queries ran as well."""
    started = [[begin for begin, _ in other] for other in others]
    found = []
    for begin, took in spans:
        shared = 0
        for other, begins in zip(others, started, strict=True):
            first = max(0, bisect_right(begins, begin) - 1)
            for near, near_took in other[first : bisect_left(begins, begin + took)]:
                shared += max(0, min(begin + took, near + near_took) - max(begin, near))
        found.append(1 / (1 + shared / max(1, took)))
    return found


def load_of_samples(samples: Iterable[Sample], begin: int, end: int) -> Load:
    """Return the arrived rows, second by second, between two moments (epoch ms).

    The rows of a micro-batch, plus the growth of its backlog, arrived since the previous one began; those of
    the first arrived within a second.
    """
    seconds = max(1, -(-(end - begin) // 1_000))
    rates = [0.0] * seconds
    since, behind = None, 0
    for sample in samples:
        left = sample.behind or 0
        rows = max(0, sample.input_rows + left - behind)
        until = (sample.started - begin) / 1_000
        if sample.gap_ms is None or since is None:
            since = until - 1
        _spread(rates, rows, max(0.0, since), min(float(seconds), max(until, 1e-3)))
        since, behind = until, left
    return Load(rates)


def _spread(rates: list[float], rows: int, since: float, until: float) -> None:
    """Distribute rows evenly over the seconds from one moment to a later one."""
    if until <= since:
        since = max(0.0, until - 1e-3)
    rate = rows / (until - since)
    for second in range(int(since), min(len(rates), -int(-until // 1))):
        rates[second] += rate * (min(until, second + 1) - max(since, second))
