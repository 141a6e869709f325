"""The metrics of runs as a table, and as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from spark_elastic_lab.simulator.run_metrics import RunMetrics
from spark_elastic_lab.simulator.simulation import Result

_COLUMNS: Mapping[str, Callable[[RunMetrics], str]] = {
    "executor-hours": lambda found: f"{found.executor_hours:.1f}",
    "outside %": lambda found: f"{found.outside_percent:.2f}",
    "largest lag": lambda found: _duration(found.largest_lag_s),
    "drained in": lambda found: _duration(found.drain_s),
    "moves": lambda found: str(found.rescales),
    "paused": lambda found: _duration(found.paused_s),
    "steps": lambda found: str(found.steps),
    "oscillations": lambda found: str(found.oscillations),
    "under %": lambda found: f"{found.elasticity.under:.1f}",
    "over %": lambda found: f"{found.elasticity.over:.1f}",
    "time under %": lambda found: f"{found.elasticity.time_under:.1f}",
    "time over %": lambda found: f"{found.elasticity.time_over:.1f}",
    "instability %": lambda found: f"{found.elasticity.instability:.1f}",
}

_BATCH_COLUMNS: Mapping[str, Callable[[RunMetrics], str]] = {
    "jobs": lambda found: str(found.batch_jobs),
    "mean job": lambda found: _duration(found.batch_mean_s),
    "longest job": lambda found: _duration(found.batch_most_s),
}
"""The columns for batch jobs, shown only if there are any."""

_MOST_FAILURES = 10

LEGEND = (
    "outside: time in which a query was further behind than the objective; drained in: the longest of it; "
    "moves: rescales of queries, with the time that they paused; steps: how often another number of "
    "executors was asked for; under, over: SPEC's elasticity against the fewest executors that would do "
    "for the queries"
)
"""The meaning of the columns."""


def table(results: Sequence[Result]) -> str:
    """Format metrics in columns, one line per run."""
    columns = {**_COLUMNS, **(_BATCH_COLUMNS if any(one.scenario.batch for one in results) else {})}
    rows = [["policy", *columns]]
    rows += [[one.policy, *(show(one.metrics) for show in columns.values())] for one in results]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows
    )


def as_data(results: Sequence[Result]) -> dict[str, Any]:
    """Return the metrics by policy, with the reference values, ready for JSON."""
    first = results[0]
    return {
        "hours": first.scenario.hours,
        "seed": first.scenario.seed,
        "maxLagSeconds": first.scenario.max_lag_s,
        "fewestExecutorHours": sum(first.demand.executors) * first.demand.step_s / 3_600,
        "policies": {one.policy: attrs.asdict(one.metrics) for one in results},
        "failures": {one.policy: failures(one) for one in results if one.notes.failed},
    }


def failures(result: Result) -> list[str]:
    """Return one line per error of a custom policy, with the number of times it occurred."""
    return [
        f"{policy} has failed {'once' if times == 1 else f'{times} times'}: {error}"
        for (policy, error), times in result.notes.failed.most_common(_MOST_FAILURES)
    ]


def _duration(seconds: float) -> str:
    """Format a time as briefly as possible."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"
