"""What a recorded load would have taken with the plugin: the simulator on the log's load and costs."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from attrs import evolve, frozen

from spark_elastic_lab.advice.costs import FEWEST, Measured, measure
from spark_elastic_lab.advice.journal import entries
from spark_elastic_lab.advice.told import MicroBatch, QueryLog, Told
from spark_elastic_lab.advice.trigger import Trigger
from spark_elastic_lab.simulator.demand import STEP_S, fewest_slots
from spark_elastic_lab.simulator.load import Load
from spark_elastic_lab.simulator.query import QuerySpec
from spark_elastic_lab.simulator.record import Steps
from spark_elastic_lab.simulator.recorded import (
    KnownCost,
    NothingRecordedError,
    Span,
    heard,
    own_shares,
    scenario_of,
)
from spark_elastic_lab.simulator.recorded_run import recorded_run
from spark_elastic_lab.simulator.simulation import Result, simulate

_HEADROOM = 1.25
_POLICIES = ("reactive", "declared", "autoscale")
_OBJECTIVE_S = 30.0
_INTERVALS = 3


@frozen(kw_only=True)
class Outcome:
    """What a run took: executor-hours, and the share (%) of time in which a query was behind the objective.

    `batch_ms` has the median duration of the micro-batches of each query, by its name. `executors` and
    `partitions` (by query) have their numbers by ms since the start.
    """

    policy: str
    executor_hours: float
    core_hours: float
    outside_percent: float
    largest_lag_s: float
    rescales: int
    batch_ms: Mapping[str, float]
    executors: Steps
    partitions: Mapping[str, Steps]


@frozen(kw_only=True)
class WhatIf:
    """The recorded run and the simulated ones; `costs` are those of queries, by name.

    No row should have waited longer than `objective_s`. `bounds` are the most slots that each query needs for
    that. `loads` are rows per second. `left_out` says which queries are not in it, and why.
    """

    objective_s: float
    outcomes: tuple[Outcome, ...]
    costs: Mapping[str, Measured]
    bounds: Mapping[str, int]
    loads: Mapping[str, Load]
    left_out: tuple[str, ...]


class TooLittle(ValueError):
    """The log has too little to simulate; the text says what is missing."""


def what_if(
    told: Told, triggers: Mapping[str, Trigger], objective_s: float | None = None, *, seed: int = 1
) -> WhatIf:
    """Simulate the load of a log with the plugin's policies. Raises TooLittle."""
    if not told.slots.times:
        raise TooLittle("the log has no executors")
    try:
        found = heard(entries(told, triggers))
    except NothingRecordedError as error:
        raise TooLittle(_reason(error)) from error
    longest_s = max((trigger.interval_ms for trigger in triggers.values()), default=0) / 1_000
    objective_s = objective_s or max(_OBJECTIVE_S, _INTERVALS * longest_s)
    plain = scenario_of(found, seed)
    logs = {query.title: query for query in told.queries.values()}
    costs, left_out = {}, []
    for spec in plain.queries:
        log = logs[spec.name]
        new_store = log.stateful and not log.rocksdb and spec.moves_state
        measured = measure(_with_own_slots(log, told), spec, new_store=new_store)
        if measured is None:
            left_out.append(f"{spec.name} has fewer than {FEWEST} micro-batches after its first ones")
        else:
            costs[spec.name] = measured
    if not costs:
        raise TooLittle("; ".join(left_out) or "no query has read rows")
    known = {name: KnownCost(cost=one.cost, source_tasks=one.read_tasks) for name, one in costs.items()}
    scenario = scenario_of(found, seed, known)
    recorded = evolve(
        scenario,
        queries=tuple(query for query in scenario.queries if query.name in costs),
        max_lag_s=objective_s,
    )
    queries = (evolve(query, cost=costs[query.name].with_plugin) for query in recorded.queries)
    scenario = evolve(recorded, queries=tuple(queries))
    loads = scenario.loads()
    bounds = {query.name: _most_slots(query, loads[query.name], objective_s) for query in scenario.queries}
    settings = {f"spark.elastic.query.{name}.upperBound": str(most) for name, most in bounds.items()}
    cores = scenario.cluster.cores
    was = recorded_run(found, recorded)
    outcomes = [_outcome(was, cores)]
    outcomes += [_outcome(one, cores) for one in simulate(evolve(scenario, settings=settings), _POLICIES)]
    return WhatIf(
        objective_s=objective_s,
        outcomes=tuple(outcomes),
        costs=costs,
        bounds=bounds,
        loads=loads,
        left_out=tuple(left_out),
    )


def _with_own_slots(query: QueryLog, told: Told) -> list[MicroBatch]:
    """Return micro-batches with the slots that those of other queries left them."""
    others = [_spans(other) for other in told.queries.values() if other is not query]
    shares = own_shares(_spans(query), others)
    return [
        evolve(one, slots=max(1, round(one.slots * share)) if one.slots else 0)
        for one, share in zip(query.batches, shares, strict=True)
    ]


def _spans(query: QueryLog) -> list[Span]:
    return [(one.started, one.took_ms) for one in query.batches]


def _reason(error: NothingRecordedError) -> str:
    return str(error).partition(":")[0].replace("the journal", "the log")


def _most_slots(query: QuerySpec, load: Load, objective_s: float) -> int:
    """Return the slots that a query needs at its highest load, with some to spare."""
    seconds = len(load.rates)
    rates = (load.mean(begin, min(begin + STEP_S, seconds)) for begin in range(0, seconds, STEP_S))
    return max(1, fewest_slots(query, max(rates) * _HEADROOM, objective_s))


def _outcome(result: Result, cores: int) -> Outcome:
    notes, metrics = result.notes, result.metrics
    return Outcome(
        policy=result.policy,
        executor_hours=metrics.executor_hours,
        core_hours=metrics.executor_hours * cores,
        outside_percent=metrics.outside_percent,
        largest_lag_s=metrics.largest_lag_s,
        rescales=metrics.rescales,
        batch_ms={name: median(query.took) for name, query in notes.queries.items() if query.took},
        executors=notes.there,
        partitions={name: query.partitions for name, query in notes.queries.items()},
    )
