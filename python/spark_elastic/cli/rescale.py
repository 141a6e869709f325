"""`spark-elastic rescale`: other bounds for a query."""

from __future__ import annotations

import click

from spark_elastic.cli.driver import (
    DriverCommand,
    Where,
    asks_driver,
    json_option,
    print_json,
    query_argument,
)
from spark_elastic.client.failures import Refused
from spark_elastic.client.names import find_at, title
from spark_elastic.client.source import Json
from spark_elastic.live.draw import bounds, shown


@click.command(cls=DriverCommand)
@query_argument(required=True)
@click.option("--vertex", default="shuffle", show_default=True, help="Whose bounds are meant.")
@click.option("--lower", type=int, metavar="N", help="Fewest partitions; -1: no bound.")
@click.option("--upper", type=int, metavar="N", help="Most partitions; -1: no bound.")
@click.option("--parallelism", type=int, metavar="N", help="Exactly so many: both bounds.")
@click.option("--up", is_flag=True, help="One partition more than now as the upper bound.")
@click.option("--down", is_flag=True, help="One partition fewer than now as the upper bound.")
@json_option
@asks_driver
def rescale(
    where: Where,
    query: str,
    vertex: str,
    lower: int | None,
    upper: int | None,
    parallelism: int | None,
    up: bool,
    down: bool,
    as_json: bool,
) -> None:
    """Change the bounds of a QUERY (adaptive mode); in force from one of its next micro-batches.

    Bounds that somebody else changes at the same moment are left as they are, with an error. --json prints
    the query after the change, as the API has it.
    """
    ways = (lower is not None or upper is not None, parallelism is not None, up, down)
    if sum(ways) != 1:
        raise click.UsageError("say one of --lower and --upper, --parallelism, --up, --down")
    driver = where.driver()
    found = find_at(driver, query)
    path = f"/queries/{found['id']}/resource-requirements"
    wanted, tag = driver.get_tagged(path)
    if vertex not in wanted:
        raise Refused(f"{title(found)} has no vertex '{vertex}': there are {', '.join(wanted)}")
    both = wanted[vertex]["parallelism"]
    if parallelism is not None:
        lower = upper = parallelism
    if up or down:
        if vertex != "shuffle":
            raise Refused(f"--up and --down are for the shuffle: name --lower or --upper of {vertex}")
        upper = _step(found, both, 1 if up else -1)
        lower = min(both["lowerBound"], upper)
    changed = {"lowerBound": lower, "upperBound": upper}
    both.update({name: bound for name, bound in changed.items() if bound is not None})
    driver.put(path, wanted, tag)
    now = driver.get(f"/queries/{found['id']}")
    if as_json:
        print_json(now)
        return
    of = "" if vertex == "shuffle" else f" of {vertex}"
    click.echo(f"{shown(title(now))}: bounds{of} {bounds(now, vertex)}, before {bounds(found, vertex)}")
    decision = now["lastDecision"]
    if decision is not None:
        click.echo(f"{shown(decision['message'])} [{decision['reason']}]")


def _step(query: Json, bounds: Json, step: int) -> int:
    """Return the partitions that the query has or is about to have within its bounds, and `step` more."""
    now = query["target"] or query["partitions"]
    if now is None:
        raise Refused(f"{title(query)} is {query['state']} and has no partitions yet: name --upper")
    # New bounds may be waiting for the end of a cooldown.
    now = max(bounds["lowerBound"], min(bounds["upperBound"], now))
    if now + step < 1:
        raise Refused(f"{title(query)} has 1 partition, fewer are not possible: stop it with stop")
    return int(now + step)
