"""`spark-elastic savepoint`: copy a query's checkpoint."""

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
from spark_elastic_tools.cli.waiting import Savepointing, format_option, timeout_option, wait_option
from spark_elastic_tools.client import find_at
from spark_elastic_tools.live import shown


@click.command(cls=DriverCommand)
@query_argument(required=True)
@click.argument("target", required=False)
@format_option
@wait_option
@timeout_option
@json_option
@asks_driver
def savepoint(
    where: Where,
    query: str,
    target: str | None,
    format: str | None,
    wait: bool,
    timeout: float,
    as_json: bool,
) -> None:
    """Take a savepoint of a QUERY, wait until it is complete, and print its path.

    TARGET is the folder in which the savepoint is written, a path or a URI of a Hadoop file system. It must
    be below spark.elastic.savepointDir, which is the default, or spark.elastic.savepoint.allowedPrefixes.
    With --format the state in it is rewritten, so that a query can start from it elsewhere: hdfs is what
    plain Spark has without any setting. The query's own checkpoint stays as it is.

    --json prints the savepoint as the API returns it.
    """
    driver = where.driver()
    savepointing = Savepointing(driver, find_at(driver, query))
    taken = savepointing.take(target, format, stop=False, timeout_s=timeout if wait else None)
    if as_json:
        print_json(taken)
    elif wait:
        click.echo(shown(taken["path"]))
