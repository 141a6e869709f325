"""The outcome of a demonstration as data: what the closing table shows and --json writes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import attrs
from attrs import frozen

from spark_elastic.demo.check import Check
from spark_elastic.demo.chronicle import Chronicle
from spark_elastic.demo.output import longest_gap
from spark_elastic.demo.steps import Deed, Outcome, Trend


@frozen(kw_only=True)
class StepEffect:
    """What a step meant for one query: from the change of executor or bound to the new count; output gap."""

    query: str
    in_force_ms: int | None
    output_gap_ms: int | None


@frozen(kw_only=True)
class StepSummary:
    """One step: `at_ms` since the first step, `executor_ms` from the deed to the executor's change.

    `slots` are those that it was to lead to; where that was a trend, those that it has led to.
    """

    title: str
    slots: int
    at_ms: int
    executor: str | None
    executor_ms: int | None
    effects: tuple[StepEffect, ...]


@frozen(kw_only=True)
class QuerySummary:
    """One query over the whole run; rows are None if the comparison could not be made."""

    query: str
    stateful: bool
    trigger_ms: int
    batches: int
    rescales: int
    rows_in: int | None
    rows_out: int | None
    rows_expected: int | None


@frozen(kw_only=True)
class Summary:
    """Everything that a demonstration found; `ok` only if every check holds."""

    version: str
    spark_version: str
    ok: bool
    decisions: int
    steps: tuple[StepSummary, ...]
    queries: tuple[QuerySummary, ...]
    checks: tuple[Check, ...]

    def to_json(self) -> str:
        """Write the summary as a JSON object."""
        return json.dumps(attrs.asdict(self), indent=2)


def summarize(
    *,
    version: str,
    chronicle: Chronicle,
    outcomes: Sequence[Outcome],
    outputs: Mapping[str, Sequence[int]],
    ended: int,
    comparison: Mapping[str, Mapping[str, int]],
    checks: Iterable[Check],
) -> Summary:
    """Put all together; `outputs` has the times of each query's output, `ended` the scenario's end."""
    ends = [outcome.acted for outcome in outcomes[1:]] + [ended]
    checked = tuple(checks)
    return Summary(
        version=version,
        spark_version=chronicle.spark_version,
        ok=all(check.ok for check in checked),
        decisions=chronicle.decided,
        steps=tuple(
            _step(outcome, outcomes[0].acted, end, outputs)
            for outcome, end in zip(outcomes, ends, strict=True)
        ),
        queries=_queries(chronicle, comparison),
        checks=checked,
    )


def _step(outcome: Outcome, first: int, end: int, outputs: Mapping[str, Sequence[int]]) -> StepSummary:
    bound = outcome.step.deed is Deed.BOUND
    change = outcome.acted if bound else outcome.executor_at
    # The time from the first executor to the first batch is the application's own start.
    trend = isinstance(outcome.step.slots, Trend)
    measured = change is not None and (trend or outcome.step.deed is not Deed.START)
    return StepSummary(
        title=outcome.step.title,
        slots=(outcome.after or 0) if isinstance(outcome.step.slots, Trend) else outcome.step.slots,
        at_ms=outcome.acted - first,
        executor=outcome.executor,
        executor_ms=change - outcome.acted if change is not None and measured and not bound else None,
        effects=tuple(
            StepEffect(
                query=query,
                in_force_ms=outcome.in_force[query] - change
                if change is not None and measured and query in outcome.in_force
                else None,
                output_gap_ms=longest_gap(times, change or outcome.acted, end),
            )
            for query, times in outputs.items()
        ),
    )


def _queries(chronicle: Chronicle, comparison: Mapping[str, Mapping[str, int]]) -> tuple[QuerySummary, ...]:
    return tuple(
        QuerySummary(
            query=query.name,
            stateful=query.stateful,
            trigger_ms=query.trigger_ms,
            batches=len(query.batches),
            rescales=query.rescales,
            rows_in=comparison.get(query.name, {}).get("rows_in"),
            rows_out=comparison.get(query.name, {}).get("rows_out"),
            rows_expected=comparison.get(query.name, {}).get("rows_expected"),
        )
        for query in chronicle.queries.values()
    )
