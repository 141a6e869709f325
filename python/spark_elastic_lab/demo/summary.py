"""The outcome of a demonstration as data, for the closing table and for --json."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import attrs
from attrs import frozen
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from spark_elastic_lab.demo.check import Check
from spark_elastic_lab.demo.chronicle import Chronicle
from spark_elastic_lab.demo.steps import Deed, Outcome, Trend

# ---- When did a query write? Its file sink's log has the answer, and restarts do not change it.


def commits(sink: Path) -> tuple[int, ...]:
    """Return the times (epoch ms, ascending) at which a Parquet sink committed its batches."""
    entries = [
        entry for entry in (sink / "_spark_metadata").glob("[0-9]*") if not entry.name.endswith(".tmp")
    ]
    return tuple(sorted(entry.stat().st_mtime_ns // 1_000_000 for entry in entries))


def longest_gap(times: Sequence[int], begin: int, end: int) -> int | None:
    """Return the longest gap (ms) between two outputs that overlaps `begin` to `end`, or None."""
    pairs = itertools.pairwise(times)
    return max((later - earlier for earlier, later in pairs if later > begin and earlier < end), default=None)


@frozen(kw_only=True)
class StepEffect:
    """The effect of a step on one query.

    `in_force_ms` is the time from the change of the executor or the bound to the new count.
    """

    query: str
    in_force_ms: int | None
    output_gap_ms: int | None


@frozen(kw_only=True)
class StepSummary:
    """One step: `at_ms` since the first step, `executor_ms` from the deed to the executor's change.

    `slots` is the number that the step should lead to or, for a trend, the number it led to.
    """

    title: str
    slots: int
    at_ms: int
    executor: str | None
    executor_ms: int | None
    effects: tuple[StepEffect, ...]


@frozen(kw_only=True)
class QuerySummary:
    """One query over the whole run; rows are None if the comparison failed."""

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
    """All results of a demonstration; `ok` only if every check holds."""

    version: str
    spark_version: str
    ok: bool
    decisions: int
    steps: tuple[StepSummary, ...]
    queries: tuple[QuerySummary, ...]
    checks: tuple[Check, ...]

    def to_json(self) -> str:
        """Return the summary as a JSON object."""
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
    """Build the summary; `outputs` holds each query's output times, `ended` the end of the scenario."""
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
    # The time from the first executor to the first batch is the application's own startup.
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


# ---- Draw the closing summary.


def draw_summary(summary: Summary) -> RenderableType:
    """Draw steps, queries and checks, and a last line with the verdict."""
    verdict = (
        Text("every check holds", "bold green") if summary.ok else Text("NOT every check holds", "bold red")
    )
    return Group(_steps(summary), _queries_table(summary), _checks(summary), verdict)


def _ms(value: int | None) -> str:
    return "–" if value is None else f"{value:,} ms"


def _steps(summary: Summary) -> RenderableType:
    table = Table(title="what happened", title_justify="left")
    table.add_column("at", justify="right")
    table.add_column("event")
    table.add_column("slots", justify="right")
    table.add_column("executor came or went after", justify="right")
    for query in summary.queries:
        table.add_column(f"{query.query}: in force after", justify="right")
        table.add_column("longest output gap", justify="right")
    for step in summary.steps:
        table.add_row(*_step_row(step, summary))
    return table


def _step_row(step: StepSummary, summary: Summary) -> list[str]:
    effects = {effect.query: effect for effect in step.effects}
    cells = [f"{step.at_ms / 1000:.0f} s", step.title, str(step.slots), _ms(step.executor_ms)]
    for query in summary.queries:
        effect = effects[query.query]
        cells += [_ms(effect.in_force_ms), _ms(effect.output_gap_ms)]
    return cells


def _queries_table(summary: Summary) -> RenderableType:
    table = Table(title="queries", title_justify="left")
    for title in ("query", "kind"):
        table.add_column(title)
    for title in ("trigger", "batches", "rescales", "rows in", "rows out", "rows of the batch job"):
        table.add_column(title, justify="right")
    for query in summary.queries:
        table.add_row(*_query(query))
    return table


def _query(query: QuerySummary) -> list[str]:
    rows = [
        "–" if count is None else f"{count:,}"
        for count in (query.rows_in, query.rows_out, query.rows_expected)
    ]
    kind = "stateful" if query.stateful else "stateless"
    return [query.query, kind, _ms(query.trigger_ms), str(query.batches), str(query.rescales), *rows]


def _checks(summary: Summary) -> RenderableType:
    table = Table(title="checks", title_justify="left", show_header=False)
    for check in summary.checks:
        table.add_row(
            Text("ok", "green") if check.ok else Text("FAILED", "bold red"), check.name, Text(check.found)
        )
    return table
