"""`spark-elastic stop`: stop a query."""

from __future__ import annotations

import click

from spark_elastic_tools.cli.driver import (
    DriverCommand,
    Where,
    asks_driver,
    json_option,
    print_json,
    query_argument,
)
from spark_elastic_tools.cli.waiting import Savepointing, format_option, timeout_option, until, wait_option
from spark_elastic_tools.client import Driver, Json, NoDriver, find_at, title
from spark_elastic_tools.live import shown


@click.command(cls=DriverCommand)
@query_argument(required=True)
@click.option(
    "--savepoint",
    "target",
    is_flag=False,
    flag_value="",
    metavar="[TARGET]",
    help="Take a savepoint at its last micro-batch, under TARGET or spark.elastic.savepointDir; type it "
    "after QUERY.",
)
@format_option
@wait_option
@timeout_option
@json_option
@asks_driver
def stop(
    where: Where,
    query: str,
    target: str | None,
    format: str | None,
    wait: bool,
    timeout: float,
    as_json: bool,
) -> None:
    """Stop a QUERY permanently and wait until it has ended; with a savepoint, print its path.

    --json prints the savepoint or the query as the API returns it.
    """
    if format is not None and target is None:
        raise click.UsageError("--format is for the savepoint: add --savepoint")
    driver = where.driver()
    found = find_at(driver, query)
    if target is None:
        driver.order(f"/queries/{found['id']}/stop", {})
        done = _wait_for_end(driver, found, timeout) if wait else {}
    else:
        timeout_s = timeout if wait else None
        done = Savepointing(driver, found).take(target or None, format, stop=True, timeout_s=timeout_s)
    if as_json:
        print_json(done)
    elif wait:
        click.echo(shown(done["path"] if target is not None else f"{title(found)} has ended"))


def _wait_for_end(driver: Driver, query: Json, timeout_s: float) -> Json:
    def look() -> Json | None:
        try:
            now = driver.get(f"/queries/{query['id']}")
        except NoDriver:
            return query  # the application ended with the query
        return now if now["state"] == "Finished" else None

    return until(look, timeout_s, f"{title(query)} has not ended")
