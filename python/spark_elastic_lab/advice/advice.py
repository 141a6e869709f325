"""All that is known about an application from its event log, and what is advised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from attrs import frozen

from spark_elastic_lab.advice.proposal import Proposal, propose
from spark_elastic_lab.advice.queries import QueryReport, query_report
from spark_elastic_lab.advice.stages import StageReport, StagesSeen
from spark_elastic_lab.advice.told import QueryLog, Told
from spark_elastic_lab.advice.trigger import Trigger, find_trigger
from spark_elastic_lab.advice.what_if import TooLittle, WhatIf, what_if

_NEVER = (0, 0, 0)
_MOMENT = 0.05


@frozen(kw_only=True)
class Batch:
    """Stages of batch jobs: how many there were, how many read a shuffle, and those that lost time."""

    executions: int
    stages: int
    shuffles: int
    wall_ms: int
    lost_ms: int
    failed_tasks: int
    worst: tuple[StageReport, ...]
    texts: Mapping[int, str]


@frozen(kw_only=True)
class Advice:
    """An application; `executors` and `slots` are the fewest, the usual (most of the time) and the most.

    `busy` is the share of its slots that had a task, None if unknown. `price` is that of an hour of a core,
    None if unknown. `why_not` says why nothing was simulated, "" if something was. `unsure` is what the log
    cannot tell about the application as a whole.
    """

    log: str
    application: str
    name: str
    spark: str
    hours: float
    ended: bool
    executors: tuple[int, int, int]
    slots: tuple[int, int, int]
    executor_hours: float
    core_hours: float
    busy: float | None
    lost_executors: int
    queries: tuple[QueryReport, ...]
    batch: Batch
    what_if: WhatIf | None
    why_not: str
    proposal: Proposal
    price: float | None
    unsure: tuple[str, ...]
    logs: Mapping[str, QueryLog]


def advise(
    told: Told,
    stages: StagesSeen,
    *,
    log: str,
    triggers: Mapping[str, float] | None = None,
    objective_s: float | None = None,
    price: float | None = None,
) -> Advice:
    """Advise on an application whose log has been read.

    `triggers` has the intervals (s) of queries that are known otherwise, by name or id. Raises TooLittle if
    the log does not even say when the application ran.
    """
    if told.begin is None:
        raise TooLittle("it has no event with a time")
    _tell_apart(told)
    given = triggers or {}
    queries = {query.query: query for query in told.queries.values() if query.batches}
    known = {id_: _trigger(query, given) for id_, query in queries.items()}
    reports = tuple(query_report(query, known[id_], told) for id_, query in queries.items())
    simulated, why_not = None, "no streaming query has committed a micro-batch"
    if queries:
        try:
            simulated, why_not = what_if(told, known, objective_s), ""
        except TooLittle as error:
            why_not = str(error)
    end = told.end - told.begin
    slots_ms = _total(told, end)
    executor_hours = told.executors.total(told.end) / 3_600_000
    cores = told.cores.values()
    return Advice(
        log=log,
        application=told.application,
        name=told.name,
        spark=told.spark,
        hours=told.hours,
        ended=told.ended,
        executors=_range(told.executors.values, told.executors.times, told.end),
        slots=_range(told.slots.values, told.slots.times, told.end),
        executor_hours=executor_hours,
        core_hours=executor_hours * (sum(cores) / len(cores) if cores else 0),
        busy=min(1.0, told.busy_ms / slots_ms) if slots_ms else None,
        lost_executors=told.lost,
        queries=reports,
        batch=Batch(
            executions=len(told.texts),
            stages=stages.stages,
            shuffles=stages.shuffles,
            wall_ms=stages.wall_ms,
            lost_ms=stages.lost_ms,
            failed_tasks=stages.failed,
            worst=tuple(stages.kept),
            texts=told.texts,
        ),
        what_if=simulated,
        why_not=why_not,
        proposal=propose(told, simulated),
        price=price,
        unsure=tuple(_unsure(told)),
        logs=queries,
    )


def _tell_apart(told: Told) -> None:
    """Give queries of the same name names of their own."""
    names = Counter(query.title for query in told.queries.values())
    for query in told.queries.values():
        if names[query.title] > 1:
            query.name = f"{query.title}-{query.query[:8]}"


def _trigger(query: QueryLog, given: Mapping[str, float]) -> Trigger:
    seconds = given.get(query.title, given.get(query.query))
    if seconds is not None:
        return Trigger(round(seconds * 1_000), "given")
    return find_trigger(query.batches)


def _total(told: Told, end: int) -> float:
    return told.slots.total(told.end) if end > 0 else 0.0


def _range(values: list[int], times: list[int], end: int) -> tuple[int, int, int]:
    """Return the fewest, the usual and the most, without what held only for a moment, as at the start."""
    if not values:
        return _NEVER
    there: Counter[int] = Counter()
    for value, since, until in zip(values, times, [*times[1:], max(end, times[-1])], strict=True):
        there[value] += until - since
    least = _MOMENT * sum(ms for value, ms in there.items() if value)
    kept = {value: ms for value, ms in there.items() if value and ms > least} or {max(values): 1}
    return min(kept), max(kept, key=lambda value: kept[value]), max(kept)


def _unsure(told: Told) -> list[str]:
    found = []
    if not told.ended:
        found.append("the log is unfinished: the application still runs, or its driver has died")
    if not told.spark:
        found.append("the log does not name its version of Spark")
    if not told.executors.times:
        found.append("the log has no executors: slots and executor-hours are unknown")
    found.append(
        "the log says nothing about executors before they registered, memory pressure and the network"
    )
    return found
