"""`spark-elastic history`: a query's rescales and their outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from spark_elastic.core.reasons.reason import duration
from spark_elastic_tools.cli.driver import (
    DriverCommand,
    Where,
    asks_driver,
    clock,
    console,
    journal_option,
    json_option,
    print_json,
    query_argument,
)
from spark_elastic_tools.client import Json, find_at, title
from spark_elastic_tools.live import brief, shown

_STATUS = {"completed": "green", "failed": "red", "in_progress": "yellow"}


@click.command(cls=DriverCommand)
@query_argument(required=True)
@journal_option
@json_option
@asks_driver
def history(where: Where, query: str, journal: Path | None, as_json: bool) -> None:
    """List the rescales of a QUERY, newest first, and the failures of its runs.

    --json prints both as the API returns them: {"rescales": [{…}], "exceptions": [{…}]}.
    """
    source = where.source(journal)
    found = find_at(source, query)
    rescales = source.get(f"/queries/{found['id']}/rescales")["rescales"]
    exceptions = source.get(f"/queries/{found['id']}/exceptions")["exceptions"]
    if as_json:
        print_json({"rescales": rescales, "exceptions": exceptions})
        return
    out = console()
    out.print(_rescales(f"{shown(title(found))}: rescales", rescales))
    if exceptions:
        out.print(_exceptions(exceptions))


def _rescales(name: str, rescales: Sequence[Json]) -> Table:
    table = Table(title=Text(name), title_justify="left")
    table.add_column("no.", justify="right")
    for column in ("began", "cause", "outcome"):
        table.add_column(column)
    for column in ("slots", "partitions", "took", "prepared", "paused", "first batch"):
        table.add_column(column, justify="right")
    table.add_column("executors used after", justify="right")
    for rescale in rescales:
        reason = "" if rescale["reason"] in (None, "succeeded") else f" ({rescale['reason']})"
        ended, used = rescale["ended"], rescale["executorsUsed"]
        table.add_row(
            str(rescale["number"]),
            clock(rescale["started"]),
            rescale["cause"],
            Text(rescale["status"] + reason, _STATUS.get(rescale["status"], "dim")),
            change(rescale["slotsBefore"], rescale["slotsAfter"]),
            change(rescale["partitionsBefore"], rescale["partitionsAfter"]),
            "–" if ended is None else duration(ended - rescale["started"]),
            _took(rescale["preparedMs"]),
            duration(rescale["pausedMs"]),
            _took(rescale["firstBatchMs"]),
            "–" if used is None else duration(used - rescale["started"]),
        )
    return table


def _took(ms: int | None) -> str:
    return "–" if ms is None else duration(ms)


def change(before: int | None, after: int | None) -> str:
    """Format a number before and after a change; an unknown value is left out."""
    known = [str(value) for value in (before, after) if value is not None]
    return " → ".join(known) or "–"


def _exceptions(exceptions: Sequence[Json]) -> Table:
    table = Table(title="failures of its runs", title_justify="left")
    for column in ("at", "what was decided", "error"):
        table.add_column(column)
    for exception in exceptions:
        error = Text(shown(brief(exception["summary"])))
        table.add_row(clock(exception["at"]), exception["reason"], error)
    return table
