"""`spark-elastic status`: an overview of an application."""

from __future__ import annotations

from pathlib import Path

import click

from spark_elastic_tools.cli.driver import (
    DriverCommand,
    Where,
    asks_driver,
    console,
    journal_option,
    json_option,
    print_json,
    query_argument,
)
from spark_elastic_tools.client import find
from spark_elastic_tools.live import Documents, draw_snapshot


@click.command(cls=DriverCommand)
@query_argument(required=False)
@journal_option
@json_option
@asks_driver
def status(where: Where, query: str | None, journal: Path | None, as_json: bool) -> None:
    """Show mode, slots, executors and queries, or one QUERY (its name, its id, or the start of either).

    For queries with a policy: the slots it wants, their load, and when a backlog will be gone.

    --json prints the API's overview and its queries: {"overview": {…}, "queries": [{…}]}.
    """
    source = where.source(journal)
    overview, queries = source.get("/overview"), source.get("/queries")["queries"]
    if query is not None:
        queries = [find(queries, query)]
    if as_json:
        print_json({"overview": overview, "queries": queries})
    else:
        console().print(draw_snapshot(Documents(overview, tuple(queries))))
