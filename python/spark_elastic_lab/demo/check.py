"""The checks at the end of the demonstration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import frozen

from spark_elastic_lab.demo.chronicle import Chronicle, QueryChronicle
from spark_elastic_lab.demo.steps import Deed, Outcome, Step, Trend
from spark_elastic_tools.live import brief

_NEVER_FOLLOWS = {"start_for_growth", "no_repartition_spark"}
"""Reasons that mean that a query's partition count can never change, or not on this Spark."""


@frozen(kw_only=True)
class Check:
    """One statement, whether it holds, and what was found."""

    name: str
    ok: bool
    found: str


def check_application(exit_code: int | None) -> Check:
    """Check that the application ended on its own."""
    found = "still runs" if exit_code is None else f"exit code {exit_code}"
    return Check(name="the application ended by itself", ok=exit_code == 0, found=found)


def check_steps(steps: Iterable[Step], outcomes: Iterable[Outcome], chronicle: Chronicle) -> list[Check]:
    """Check that each step led to its number of slots, and that every query that can follow runs with it.

    If a step leads to a trend, the number of executors must have changed in that direction.
    """
    by_step = {outcome.step.title: outcome for outcome in outcomes}
    following = [query.name for query in chronicle.queries.values() if query.follows_slots]
    who = "every query" if len(following) == len(chronicle.queries) else " and ".join(following)
    return [_check_step(step, by_step.get(step.title), who) for step in steps]


def _check_step(step: Step, outcome: Outcome | None, who: str) -> Check:
    trend = step.slots if isinstance(step.slots, Trend) else None
    aim = f"{who} runs with {step.slots}" if trend is None else f"{trend.value} executors by themselves"
    name = f"{step.title}: {aim}"
    if outcome is None:
        return Check(name=name, ok=False, found="never begun")
    count = "" if trend is None else f"{outcome.before} before, {outcome.after} now"
    if outcome.settled is not None:
        took = f"after {(outcome.settled - outcome.acted) / 1000:.1f} s"
        return Check(name=name, ok=True, found=f"{count}, {took}" if count else took)
    if count:
        return Check(name=name, ok=False, found=f"{count}, which is not what was waited for, or did not last")
    waits = outcome.executor is None and step.deed is not Deed.BOUND
    missing = "executor" if waits else "parallelism"
    return Check(name=name, ok=False, found=f"no change of {missing} seen")


def check_kept(chronicle: Chronicle) -> list[Check]:
    """Check that a query whose count cannot change keeps its first count and reports why."""
    return [_check_kept(query) for query in chronicle.queries.values() if not query.follows_slots]


def _check_kept(query: QueryChronicle) -> Check:
    counts = sorted({batch.partitions for batch in query.batches})
    said = sorted(query.reasons & _NEVER_FOLLOWS)
    partitions = " and ".join(map(str, counts)) or "no"
    return Check(
        name=f"{query.name}: keeps the count that it began with, and says why",
        ok=len(counts) == 1 and bool(said),
        found=f"{partitions} partitions in {len(query.batches)} batches; {', '.join(said) or 'no reason'}",
    )


def check_rows(queries: Iterable[str], comparison: Mapping[str, Mapping[str, int]]) -> list[Check]:
    """Check that each query wrote exactly the rows of the batch job, and that there were any."""
    return [_check_rows(name, comparison.get(name)) for name in queries]


def _check_rows(name: str, counts: Mapping[str, int] | None) -> Check:
    title = f"{name}: output equals the batch result"
    if counts is None:
        return Check(name=title, ok=False, found="could not be compared")
    missing, surplus, rows = counts["missing"], counts["surplus"], counts["rows_out"]
    ok = missing == 0 and surplus == 0 and rows == counts["rows_expected"] > 0
    found = f"{counts['rows_in']:,} rows in, {rows:,} out, {missing:,} missing, {surplus:,} doubled or wrong"
    return Check(name=title, ok=ok, found=found)


def check_sent(sent: int, comparison: Mapping[str, Mapping[str, int]]) -> Check:
    """Check that the batch job read every sent row exactly once."""
    read = {counts["rows_in"] for counts in comparison.values()}
    counted = " or ".join(f"{rows:,}" for rows in sorted(read)) or "none"
    found = f"{sent:,} sent, {counted} found by the batch job"
    return Check(name="the topic has every row that was sent", ok=read == {sent} and sent > 0, found=found)


def check_offsets(chronicle: Chronicle) -> Check:
    """Check that every query has reported how far behind its source it is."""
    most = {query.name: query.most_behind for query in chronicle.queries.values()}
    said = [f"{name} at most {offsets:,}" for name, offsets in most.items() if offsets is not None]
    ok = len(said) == len(most) > 0
    return Check(name="every query says how far behind it is", ok=ok, found=", ".join(said) or "no offsets")


def check_queries(chronicle: Chronicle) -> Check:
    """Check that no query failed."""
    errors = [f"{query.name}: {brief(query.error)}" for query in chronicle.queries.values() if query.error]
    return Check(name="no query failed", ok=not errors, found="; ".join(errors) or "no error")


def check_processes(left: Iterable[str]) -> Check:
    """Check that no started process still runs; `left` names those that do."""
    names = ", ".join(left)
    return Check(name="no process is left over", ok=not names, found=names or "none")
