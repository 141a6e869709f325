"""`spark-elastic explain`: why a query was or was not rescaled, or why a batch stage got its parallelism."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from spark_elastic.core.reasons.reason import duration
from spark_elastic_tools.cli.driver import (
    DriverCommand,
    Where,
    asks_driver,
    clock,
    journal_option,
    json_option,
    print_json,
    query_argument,
)
from spark_elastic_tools.client import Json, Source, find, title
from spark_elastic_tools.live import bounds, in_full, shown

_MOST = 1_000
_CHANGES = ("rescale_in_place", "rescale_state", "start")
_HOLDS = ("held", "nothing_to_do", "failed", "finished")


@click.command(cls=DriverCommand)
@query_argument(required=False)
@click.option("--stages", is_flag=True, help="Explain batch stages instead.")
@click.option("--limit", type=click.IntRange(1, _MOST), default=20, show_default=True, help="With --stages.")
@journal_option
@json_option
@asks_driver
def explain(
    where: Where, query: str | None, stages: bool, limit: int, journal: Path | None, as_json: bool
) -> None:
    """Explain why a QUERY was last rescaled, and why it has not been since; without QUERY, explain all.

    For a query with a policy: what the policy wants, what it bases that on, and when a backlog will be gone.

    With --stages: why the latest batch stages got their parallelism. --json prints the decisions as the API
    returns them.
    """
    if stages and query is not None:
        raise click.UsageError("stages belong to no streaming query: leave QUERY or --stages out")
    source = where.source(journal)
    if stages:
        _explain_stages(source.get(f"/stages?limit={limit}"), as_json)
        return
    overview, queries = source.get("/overview"), source.get("/queries")["queries"]
    if query is not None:
        queries = [find(queries, query)]
    else:
        queries = [one for one in queries if one["state"] != "Finished"] or queries
    found = [_explanation(source, one) for one in queries]
    if as_json:
        print_json({"explanations": found})
    elif not found:
        click.echo("no streaming query yet; batch stages: spark-elastic explain --stages")
    else:
        click.echo("\n\n".join("\n".join(_tell(one, overview)) for one in found))


def _explanation(source: Source, query: Json) -> Json:
    """Find the last decision that changed the query, what has held it since, and its rescale."""
    decisions = source.get(f"/decisions?query={query['id']}&limit={_MOST}")["decisions"]
    rescales = source.get(f"/queries/{query['id']}/rescales")["rescales"]
    last = next((d for d in decisions if d["kind"] in _CHANGES), None)
    since = last["number"] if last is not None else 0
    held = next((d for d in decisions if d["kind"] in _HOLDS and d["number"] > since), None)
    of_last = [r for r in rescales if last is not None and _covers(r, last["at"])]
    rescale = of_last[0] if of_last else None if last is not None else next(iter(rescales), None)
    return {"query": query, "change": last, "held": held, "rescale": rescale}


def _covers(rescale: Json, at: int) -> bool:
    return bool(rescale["started"] <= at <= (rescale["ended"] or at))


def _tell(found: Json, overview: Json) -> Iterator[str]:
    query, change, held, rescale = found["query"], found["change"], found["held"], found["rescale"]
    now = overview["at"]
    yield _heading(query, overview)
    if change is not None:
        yield "why it runs with these" if change["kind"] == "start" else "why it was rescaled"
        yield from _decision(change, now)
    elif rescale is not None:
        yield f"its last rescale started {_at(rescale['started'], now)}, caused by {rescale['cause']}; the"
        yield "decision itself is no longer kept"
    if rescale is not None:
        yield f"  what came of it: {_outcome(rescale)}"
    if held is not None:
        yield "why nothing has changed since"
        yield from _decision(held, now)
    elif change is None and rescale is None:
        yield "no decision about it yet"
    if query["policy"] is not None:
        yield f"what policy {shown(query['policy']['name'])} decides"
        yield from (f"  {shown(line)}" for line in in_full(query["policy"], query["grantedSlots"]))


def _heading(query: Json, overview: Json) -> str:
    partitions, slots = query["partitions"], overview["slots"]["now"]
    runs = "" if partitions is None else f" with {partitions} partition{'' if partitions == 1 else 's'}"
    within = f", bounds {bounds(query)}" if query["mode"] == "adaptive" else ""
    on = f"{slots} slot{'' if slots == 1 else 's'}"
    share = "" if query["slots"] == slots else f"{query['slots']} of "
    return f"{shown(title(query))} ({query['id']}): {query['state']}{runs}, {share}{on} there{within}"


def _decision(decision: Json, now: int) -> Iterator[str]:
    yield f"  {_at(decision['at'], now)}: {_sentence(decision)}"
    if decision["numbers"]:
        numbers = ", ".join(f"{shown(name)} {shown(value)}" for name, value in decision["numbers"].items())
        yield f"  compared: {numbers}"
    if decision["alternatives"]:
        yield f"  also looked at: {'; '.join(map(shown, decision['alternatives']))}"
    if decision["until"] is not None:
        left = decision["until"] - now
        yield f"  until {clock(decision['until'])}" + (f", in {duration(left)}" if left > 0 else "")


def _sentence(decision: Json) -> str:
    return f"{shown(decision['message'])} [{decision['reason']}]"


def _at(at: int, now: int) -> str:
    return f"{clock(at)}, {duration(now - at)} before the last event" if now > at else clock(at)


def _outcome(rescale: Json) -> str:
    if rescale["ended"] is None:
        return f"it is under way, for {rescale['cause']}"
    why = "" if rescale["reason"] == "succeeded" else f" ({rescale['reason']})"
    took = duration(rescale["ended"] - rescale["started"])
    paused = f"paused the query for {duration(rescale['pausedMs'])}" if rescale["pausedMs"] else "no pause"
    copied, first = rescale["preparedMs"], rescale["firstBatchMs"]
    prepared = "" if copied is None else f"prepared in {duration(copied)}, "
    opened = "" if first is None else f", first micro-batch {duration(first)}"
    parts = f"{prepared}{paused}{opened}{_use(rescale)}"
    return f"{rescale['status']}{why} after {took}, {parts}; its cause was {rescale['cause']}"


def _use(rescale: Json) -> str:
    used, warm_up_ms = rescale["executorsUsed"], rescale["warmUpMs"]
    if used is None:
        return ""
    warm = "" if warm_up_ms is None else f", warmed up for {duration(warm_up_ms)}"
    return f"; its new executors had tasks after {duration(used - rescale['started'])}{warm}"


def _explain_stages(found: Json, as_json: bool) -> None:
    stages: Sequence[Json] = found["stages"]
    if as_json:
        print_json(found)
        return
    for stage in reversed(stages):
        click.echo(f"{clock(stage['at'])}  {shown(stage['group'])}  {_sentence(stage)}")
    if not stages:
        click.echo("no batch stage was decided yet")
    if found["unanswered"]:
        click.echo(f"{found['unanswered']} questions had no answer in time, Spark's own rules decided")
