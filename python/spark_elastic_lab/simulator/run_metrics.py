"""The metrics of a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise

from attrs import frozen

from spark_elastic_lab.simulator.demand import Demand
from spark_elastic_lab.simulator.record import Commit, Notes, Steps

# ---- How far a query was behind its source, and for how long its lag exceeded the objective. A query's lag
# is the waiting time of its oldest unprocessed row. It only grows between two commits, so the records of the
# commits determine all of it.


Interval = tuple[float, float]
"""The start and end of a time span, ms."""


@frozen(kw_only=True)
class Lag:
    """The lag of one query: its maximum (s, rows), and the times when it exceeded the objective."""

    largest_s: float
    largest_rows: int
    outside: tuple[Interval, ...]


def lag(commits: Iterable[Commit], first_row: float, most_s: float) -> Lag:
    """Compute the lag from a query's commits; the last one is its state at the end.

    Its first row arrives at `first_row` (ms); `most_s` is the objective (s).
    """
    since, begin, largest_s, largest_rows = first_row, 0.0, 0.0, 0
    outside: list[Interval] = []
    for commit in commits:
        if since < commit.at:
            largest_s = max(largest_s, (commit.at - since) / 1_000)
        largest_rows = max(largest_rows, commit.before)
        late = max(begin, since + most_s * 1_000)
        if late < commit.at:
            outside.append((late, commit.at))
        since, begin = commit.then, commit.at
    return Lag(largest_s=largest_s, largest_rows=largest_rows, outside=tuple(joined(outside)))


def joined(intervals: Iterable[Interval]) -> Iterator[Interval]:
    """Merge intervals that touch or overlap, in order."""
    begin = end = -math.inf
    for since, until in sorted(intervals):
        if since > end:
            if end > begin:
                yield begin, end
            begin, end = since, until
        end = max(end, until)
    if end > begin:
        yield begin, end


# ---- SPEC's measures of elasticity: how closely the supply follows the demand. Source: Herbst, Krebs and
# others, *Ready for Rain? A View from SPEC Research on the Future of Cloud Metrics*, SPEC-RG-2016-01.


@frozen(kw_only=True)
class Elasticity:
    """The elasticity of a run; all values are percentages, and 0 is best.

    The accuracy is the share of the demand that was missing (`under`) or in surplus (`over`); the time share
    is the share of time for which it was. `instability` is the share of steps in which the supply did not
    move in the same direction as the demand.
    """

    under: float
    over: float
    time_under: float
    time_over: float
    instability: float


def elasticity(demand: Sequence[float], supply: Sequence[float]) -> Elasticity:
    """Compare the demand, which is more than 0, with the supply, in steps of equal length.

    Raises ValueError if there are no steps, or not equally many of both.
    """
    if not demand or len(demand) != len(supply):
        raise ValueError(f"{len(demand)} steps of demand and {len(supply)} of supply: give as many of both")
    steps = list(zip(demand, supply, strict=True))
    share = 100 / len(steps)
    moves = list(zip(pairwise(demand), pairwise(supply), strict=True))
    unlike = sum(_sign(after - before) != _sign(then - was) for (before, after), (was, then) in moves)
    return Elasticity(
        under=share * sum(max(needed - there, 0) / needed for needed, there in steps),
        over=share * sum(max(there - needed, 0) / needed for needed, there in steps),
        time_under=share * sum(needed > there for needed, there in steps),
        time_over=share * sum(there > needed for needed, there in steps),
        instability=100 * unlike / len(moves) if moves else 0.0,
    )


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)


HORIZON_MS = 600_000
"""Time (ms) within which up, down and up is an oscillation, unless the demand moves the same way."""


@frozen(kw_only=True)
class RunMetrics:
    """The metrics of one run.

    `executor_hours` are the hours paid for, from the request of an executor until it is gone.
    `outside_percent` is the share of time in which the lag of any query exceeded the objective; `drain_s` is
    the longest such stretch (s). `rescales` counts the moves of state, with pauses of `paused_s` (s) in
    total. `steps` counts the changes of the number of requested executors, `oscillations` those made in vain.
    `batch_jobs` counts the jobs that had ended by the end; they took `batch_mean_s` on average and at most
    `batch_most_s` (s).
    """

    executor_hours: float
    elasticity: Elasticity
    outside_percent: float
    largest_lag_s: float
    largest_lag_rows: int
    drain_s: float
    rescales: int
    paused_s: float
    steps: int
    oscillations: int
    lost: int
    refused: int
    batch_jobs: int = 0
    batch_mean_s: float = 0.0
    batch_most_s: float = 0.0


def run_metrics(notes: Notes, lags: Mapping[str, Lag], demand: Demand, end_ms: int) -> RunMetrics:
    """Compute the metrics of a run that lasts `end_ms` (ms)."""
    rescales = [rescaled for query in notes.queries.values() for rescaled in query.moves]
    outside = list(joined(interval for lag in lags.values() for interval in lag.outside))
    jobs = [(one.over - one.came) / 1_000 for one in notes.batch]
    middles = [(step + 0.5) * demand.step_s * 1_000 for step in range(len(demand.executors))]
    return RunMetrics(
        executor_hours=notes.paid.total(end_ms) / 3_600_000,
        elasticity=elasticity(demand.executors, [notes.there.at(middle) for middle in middles]),
        outside_percent=100 * sum(until - since for since, until in outside) / end_ms,
        largest_lag_s=max((lag.largest_s for lag in lags.values()), default=0.0),
        largest_lag_rows=max((lag.largest_rows for lag in lags.values()), default=0),
        drain_s=max((until - since for since, until in outside), default=0.0) / 1_000,
        rescales=len(rescales),
        paused_s=sum(rescaled.pause for rescaled in rescales) / 1_000,
        steps=notes.wanted.changes,
        oscillations=oscillations(notes.wanted, demand),
        lost=notes.lost,
        refused=notes.refused,
        batch_jobs=len(notes.batch),
        batch_mean_s=sum(jobs) / len(jobs) if jobs else 0.0,
        batch_most_s=max(jobs, default=0.0),
    )


def oscillations(wanted: Steps, demand: Demand) -> int:
    """Count how often executors were requested, released and requested again within the horizon.

    It does not count if the demand falls and rises within that time as well.
    """
    changes = [
        (at, after > before)
        for at, (before, after) in zip(wanted.times[1:], pairwise(wanted.values), strict=True)
    ]
    # From each run of steps in one direction: the last one up, the first one down, the first one up again.
    runs = [(up, [at for at, _ in same]) for up, same in groupby(changes, key=lambda change: change[1])]
    count = 0
    for (up, first), (_, _), (_, again) in zip(runs, runs[1:], runs[2:], strict=False):
        if up and again[0] - first[-1] <= HORIZON_MS and not _dips(demand, first[-1], again[0]):
            count += 1
    return count


def _dips(demand: Demand, begin_ms: int, end_ms: int) -> bool:
    """Return whether the demand falls and then rises between two moments."""
    step, fell = demand.step_s * 1_000, False
    for before, after in pairwise(demand.executors[max(0, begin_ms // step - 1) : end_ms // step + 2]):
        if fell and after > before:
            return True
        fell = fell or after < before
    return False
