"""`spark-elastic rescale`: change the bounds of a query."""

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
from spark_elastic_tools.client import Driver, Json, Refused, find_at, title
from spark_elastic_tools.live import bounds, shown

# ---- `rescale --up` and `--down`: one partition more or fewer than now, as bounds. The tab implements the
# same rule for + and − (`step.js`); a golden file checks both against it.


def stepped(bounds: Json, now: int, step: int, most: int) -> Json | None:
    """Return the bounds of a vertex after a step (1 or -1) from its current or pending count `now`.

    The step is an order and is carried out even if it does not pay. An upper bound alone, which Flink's UI
    sends, would change nothing here unless the rescale pays; Flink uses everything up to it. The bound behind
    the step moves to the new count; the other bound moves only if it is in the way. Return None if the new
    count would be below 1 or above `most`.
    """
    lower, upper = bounds["lowerBound"], bounds["upperBound"]
    # The new bounds may still be waiting for a cooldown to end.
    to = max(lower, min(upper, now)) + step
    if not 1 <= to <= most:
        return None
    if step > 0:
        return {"lowerBound": to, "upperBound": max(upper, to)}
    return {"lowerBound": min(lower, to), "upperBound": to}


@click.command(cls=DriverCommand)
@query_argument(required=True)
@click.option("--vertex", default="shuffle", show_default=True, help="The vertex whose bounds are changed.")
@click.option("--lower", type=int, metavar="N", help="Min partitions; -1: no bound.")
@click.option("--upper", type=int, metavar="N", help="Max partitions; -1: no bound.")
@click.option(
    "--target", type=int, metavar="N", help="Partitions wanted where no policy decides; -1: no target."
)
@click.option("--parallelism", type=int, metavar="N", help="Exactly this many: sets both bounds.")
@click.option("--up", is_flag=True, help="One more than now, even if it does not pay.")
@click.option("--down", is_flag=True, help="One fewer than now, even if it does not pay.")
@click.option("--reset", is_flag=True, help="Withdraw the bounds that were set; the configured ones apply.")
@json_option
@asks_driver
def rescale(
    where: Where,
    query: str,
    vertex: str,
    lower: int | None,
    upper: int | None,
    target: int | None,
    parallelism: int | None,
    up: bool,
    down: bool,
    reset: bool,
    as_json: bool,
) -> None:
    """Change the bounds of a QUERY (adaptive mode); they take effect in one of its next micro-batches.

    If another client changes them at the same moment, nothing is changed and the command fails. --json prints
    the query after the change, as the API returns it. Bounds that were set are stored next to the query's
    checkpoint and also apply to later drivers; --reset withdraws them.
    """
    some = any(bound is not None for bound in (lower, upper, target))
    ways = (some, parallelism is not None, up, down, reset)
    if sum(ways) != 1:
        raise click.UsageError(
            "say one of --lower, --upper and --target, --parallelism, --up, --down, --reset"
        )
    driver = where.driver()
    found = find_at(driver, query)
    path = f"/queries/{found['id']}/resource-requirements"
    if reset:
        driver.delete(path)
        _show(driver, found, vertex, as_json)
        return
    wanted, tag = driver.get_tagged(path)
    if vertex not in wanted:
        raise Refused(f"{title(found)} has no vertex '{vertex}', only {', '.join(wanted)}")
    both = wanted[vertex]["parallelism"]
    # The driver keeps a target that is not sent if the new bounds allow it.
    both.pop("target", None)
    if parallelism is not None:
        lower = upper = parallelism
    if up or down:
        most = driver.get("/overview")["maxParallelism"]
        both.update(_step(found, vertex, both, 1 if up else -1, most))
    changed = {"lowerBound": lower, "upperBound": upper, "target": target}
    both.update({name: bound for name, bound in changed.items() if bound is not None})
    driver.put(path, wanted, tag)
    _show(driver, found, vertex, as_json)


def _show(driver: Driver, found: Json, vertex: str, as_json: bool) -> None:
    """Print the query as it is now; `found` is the query before the change."""
    now = driver.get(f"/queries/{found['id']}")
    if as_json:
        print_json(now)
        return
    of = "" if vertex == "shuffle" else f" of {vertex}"
    click.echo(f"{shown(title(now))}: bounds{of} {bounds(now, vertex)}, before {bounds(found, vertex)}")
    decision = now["lastDecision"]
    if decision is not None:
        click.echo(f"{shown(decision['message'])} [{decision['reason']}]")


def _step(query: Json, vertex: str, bounds: Json, step: int, most: int) -> Json:
    of = title(query) if vertex == "shuffle" else f"{vertex} of {title(query)}"
    now = _now(query, vertex)
    if now is None:
        raise Refused(
            f"what {of} has now is not known while the query is {query['state']}: name --lower or --upper"
        )
    wanted = stepped(bounds, now, step, most)
    if wanted is None:
        raise Refused(
            f"{of} cannot have more than {most}, which is spark.elastic.maxParallelism"
            if step > 0
            else f"{of} already has 1: to end the query, type spark-elastic stop"
        )
    return wanted


def _now(query: Json, vertex: str) -> int | None:
    """Return the current or pending partitions of a vertex; for a source, the tasks that read it."""
    if vertex == "shuffle":
        copy = query["preparing"]
        count = query["target"] or (copy and copy["partitions"]) or query["partitions"]
    else:
        sources = (query["lastBatch"] or {}).get("sources", ())
        count = next((source["tasks"] for source in sources if source["vertex"] == vertex), None)
    return None if count is None else int(count)
