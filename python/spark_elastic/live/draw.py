"""Draw a snapshot for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from spark_elastic.client.names import title
from spark_elastic.client.source import Json
from spark_elastic.live.look import Snapshot
from spark_elastic.live.narrate import brief
from spark_elastic.live.plan import in_a_line

# In a narrow terminal the other columns are folded before the words are.
_NARROWEST = 24
_STATES = {"Executing": "green", "Finished": "dim", "Failing": "red"}


def draw_snapshot(snapshot: Snapshot) -> RenderableType:
    """Draw slots, executors and queries, and what is off or not in this Spark."""
    overview, queries = snapshot.overview, snapshot.queries
    return Group(
        _slots(overview),
        draw_queries(snapshot),
        *_policies(queries),
        *_silent(overview),
        *_own_settings(queries),
        *_parts_off(overview),
        *_lacks(overview),
    )


def draw_log(lines: Iterable[str]) -> RenderableType:
    """Draw the latest lines, oldest first."""
    return Panel(Text("\n".join(lines)), title="what happened", title_align="left", border_style="dim")


def draw_progress(done: float, elapsed_s: float, coming: str) -> RenderableType:
    """Draw how far the scenario is (0 to 1) and what comes next."""
    grid = Table.grid(expand=True, padding=(0, 1))
    grid.add_column(width=7, justify="right")
    grid.add_column(ratio=1)
    grid.add_column(justify="left", min_width=28)
    grid.add_row(f"{elapsed_s:.0f} s", ProgressBar(total=1.0, completed=done), f"next: {coming}")
    return grid


def shown(text: object) -> str:
    """Return a text that comes from elsewhere without what could move a terminal's cursor."""
    return "".join(c if c.isprintable() else " " for c in str(text))


def bounds(query: Json, vertex: str = "shuffle") -> str:
    """Write the bounds of a vertex of a query."""
    value = query["requirements"][vertex]["parallelism"]
    target = f", target {value['target']}" if "target" in value else ""
    return f"{value['lowerBound']}–{value['upperBound']}{target}"


def _slots(overview: Json) -> RenderableType:
    slots = overview["slots"]
    text = Text.assemble(("slots ", "bold"), (f"{slots['now']}", "bold cyan"))
    if slots["desired"] is not None:
        text.append(f", {slots['desired']} wanted")
    text.append("   ")
    for executor in overview["executors"]:
        text.append_text(_executor(executor))
    name = shown(overview["application"]["name"])
    facts = [f"{name} on Spark {shown(overview['sparkVersion'])}", overview["mode"]]
    facts += [word for word, on in (("advice only", "adviseOnly"), ("read-only", "readOnly")) if overview[on]]
    return Panel(text, title=Text(" · ".join(facts)), title_align="left")


def _executor(executor: Json) -> Text:
    note = ""
    if executor["decommissioning"]:
        note = " decommissioning"
    elif executor["excluded"]:
        note = f" excluded: {shown(executor['exclusion'])}" if executor["exclusion"] else " excluded"
    slots = executor["slots"]
    style = "green" if slots else "yellow"
    return Text.assemble(
        (f"{'■' * slots or '□'} ", style), f"executor {shown(executor['id'])}", (note, style), "   "
    )


def _parts_off(overview: Json) -> Iterable[RenderableType]:
    """Say which parts do not fit this build of Spark."""
    for part in overview["parts"]:
        if not part["on"]:
            reason = shown(part["reason"])
            yield Text.assemble(("without ", "dim"), (shown(part["name"]), "bold"), f": {reason}")


def _lacks(overview: Json) -> Iterable[RenderableType]:
    """Say what this Spark lacks and a later one has."""
    for lack in overview["lacks"]:
        words = f": {shown(lack['why'])}; {shown(lack['instead'])}"
        yield Text.assemble(("without ", "dim"), (shown(lack["what"]), "bold"), words)


def _policies(queries: Iterable[Json]) -> Iterable[RenderableType]:
    """Say what policies make of queries that live."""
    for query in queries:
        policy = query["policy"]
        if policy is not None and query["state"] != "Finished":
            said = in_a_line(policy, query["grantedSlots"])
            yield Text.assemble(
                (f"{shown(title(query))} ", "bold"), (f"{shown(policy['name'])}: ", "dim"), shown(said)
            )


def _silent(overview: Json) -> Iterable[RenderableType]:
    """Say which custom policies have no answer."""
    for policy in overview["customPolicies"]:
        if policy["error"] is not None:
            yield Text.assemble(
                ("no answer from ", "dim"), (shown(policy["name"]), "bold"), f": {shown(policy['error'])}"
            )


def _own_settings(queries: Iterable[Json]) -> Iterable[RenderableType]:
    """Say in which settings queries differ from the application."""
    for query in queries:
        if query["settings"]:
            own = ", ".join(f"{name} is {shown(value)}" for name, value in query["settings"].items())
            yield Text.assemble(
                (f"{shown(title(query))} ", "bold"), ("has settings of its own: ", "dim"), own
            )


def draw_queries(snapshot: Snapshot) -> RenderableType:
    """Draw the table of queries."""
    queries = snapshot.queries
    # Only some sources say how far behind a query is, and only adaptive mode has bounds.
    lag = any(_behind(query) is not None for query in queries)
    bounded = any(query["mode"] == "adaptive" for query in queries)
    table = Table(expand=True)
    for name in ("query", "state"):
        table.add_column(name)
    columns = ["partitions", *(["bounds"] if bounded else []), "rows/s", "batch"]
    for name in (*columns, *(["offsets behind"] if lag else []), "rescales"):
        table.add_column(name, justify="right")
    table.add_column("last decision", ratio=1, min_width=_NARROWEST)
    for query in queries:
        table.add_row(*_row(query, bounded=bounded, lag=lag))
    return table


def _row(query: Json, *, bounded: bool, lag: bool) -> Sequence[Text]:
    batch, decision, behind = query["lastBatch"], query["lastDecision"], _behind(query)
    cells = [
        Text.assemble(shown(title(query)), (" stateful" if query["stateful"] else " stateless", "dim")),
        Text(query["state"], _STATES.get(query["state"], "yellow")),
        Text(_partitions(query), "bold cyan"),
        *([Text(bounds(query) if query["mode"] == "adaptive" else "–")] if bounded else []),
        Text("–" if batch is None else f"{batch['inputRowsPerSecond']:,.0f}"),
        Text("–" if batch is None else f"{batch['durationMs']:,} ms"),
        *([Text("–" if behind is None else f"{behind:,}")] if lag else []),
        Text(str(query["rescales"])),
        Text(shown(brief(decision["message"])) if decision else ""),
    ]
    return cells


def _partitions(query: Json) -> str:
    now, target = query["partitions"], query["target"]
    text = "–" if now is None else str(now)
    return text if target in (None, now) else f"{text} → {target}"


def _behind(query: Json) -> int | None:
    """Return how far the partition that is furthest behind is behind."""
    batch = query["lastBatch"]
    return batch["offsetsBehind"]["max"] if batch and batch["offsetsBehind"] else None
