"""What a run comes to, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby, pairwise

from attrs import frozen

from spark_elastic.simulator.demand import Demand
from spark_elastic.simulator.elasticity import Elasticity, elasticity
from spark_elastic.simulator.lag import Lag, joined
from spark_elastic.simulator.record import Notes, Steps

HORIZON_MS = 600_000
"""Up, down and up again within this time is an oscillation, unless what is needed goes so, too."""


@frozen(kw_only=True)
class RunMetrics:
    """The metrics of one run.

    `executor_hours` are paid for, from the request of an executor until it is gone. Outside of the objective
    is every moment (percent) in which the lag of any query was more than that; `drain_s` is the longest
    stretch of it (s). `rescales` moved state, with pauses of `paused_s` in all; `steps` is how
    often another number of executors was asked for, `oscillations` how often in vain. `batch_jobs` are those
    that were over by the end; they took `batch_mean_s` in the mean and `batch_most_s` at most (s).
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
    """Compute the metrics of a run of so many ms."""
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
    """Count how often executors were asked for, given back and asked for again within the horizon.

    Where what is needed falls and rises in that time as well, it is none.
    """
    changes = [
        (at, after > before)
        for at, (before, after) in zip(wanted.times[1:], pairwise(wanted.values), strict=True)
    ]
    # Of steps in the same direction: the last one up, the first one down, the first one up again.
    runs = [(up, [at for at, _ in same]) for up, same in groupby(changes, key=lambda change: change[1])]
    count = 0
    for (up, first), (_, _), (_, again) in zip(runs, runs[1:], runs[2:], strict=False):
        if up and again[0] - first[-1] <= HORIZON_MS and not _dips(demand, first[-1], again[0]):
            count += 1
    return count


def _dips(demand: Demand, begin_ms: int, end_ms: int) -> bool:
    """Say whether what is needed falls and rises between two moments."""
    step, fell = demand.step_s * 1_000, False
    for before, after in pairwise(demand.executors[max(0, begin_ms // step - 1) : end_ms // step + 2]):
        if fell and after > before:
            return True
        fell = fell or after < before
    return False
