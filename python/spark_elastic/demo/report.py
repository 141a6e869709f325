"""Draw the closing summary."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from spark_elastic.demo.summary import QuerySummary, StepSummary, Summary


def draw_summary(summary: Summary) -> RenderableType:
    """Draw steps, queries and checks, and one last line with the verdict."""
    verdict = (
        Text("every check holds", "bold green") if summary.ok else Text("NOT every check holds", "bold red")
    )
    return Group(_steps(summary), _queries(summary), _checks(summary), verdict)


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
        table.add_row(*_step(step, summary))
    return table


def _step(step: StepSummary, summary: Summary) -> list[str]:
    effects = {effect.query: effect for effect in step.effects}
    cells = [f"{step.at_ms / 1000:.0f} s", step.title, str(step.slots), _ms(step.executor_ms)]
    for query in summary.queries:
        effect = effects[query.query]
        cells += [_ms(effect.in_force_ms), _ms(effect.output_gap_ms)]
    return cells


def _queries(summary: Summary) -> RenderableType:
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
