"""Draw a snapshot of an application in a terminal."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from attrs import define, field, frozen
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from spark_elastic.core.reasons.reason import duration
from spark_elastic_tools.client import Json, Source, title

if TYPE_CHECKING:
    from typing_extensions import Self


# ---- The state of an application at one moment, and what is new since the last one.


_MOST_NEWS = 1_000


@frozen
class Documents:
    """Documents of the API: the overview, the queries, and the new decisions, oldest first."""

    overview: Json
    queries: tuple[Json, ...]
    news: tuple[Json, ...] = ()


class Look:
    """Reads a source repeatedly; on the first read, up to `past` earlier decisions count as new."""

    def __init__(self, source: Source, past: int) -> None:
        self._source = source
        self._past = past
        self._last: int | None = None
        self._restarts: int | None = None

    def take(self) -> Documents:
        """Return the current state. Raises Failure."""
        overview = self._source.get("/overview")
        queries = tuple(self._source.get("/queries")["queries"])
        if overview["policyRestarts"] != self._restarts and self._restarts is not None:
            self._last = 0  # a new policy process starts its own list of decisions
        self._restarts = overview["policyRestarts"]
        return Documents(overview, queries, self._news())

    def _news(self) -> tuple[Json, ...]:
        if self._last is None:
            path = f"/decisions?limit={self._past}"
        else:
            path = f"/decisions?after={self._last}&limit={_MOST_NEWS}"
        news = self._source.get(path)["decisions"]
        self._last = news[0]["number"] if news else self._last or 0
        return tuple(reversed(news))


# ---- Describe in lines what has changed from one snapshot to the next.


_LONGEST = 240


@define
class Narrator:
    """Describes changes in lines, and remembers them, so that each is reported once."""

    _executors: dict[str, tuple[bool, bool]] | None = None
    _partitions: dict[str, int] = field(factory=dict)

    def lines(self, snapshot: Documents) -> list[str]:
        """Return one line for each change since the last call."""
        names = {query["id"]: title(query) for query in snapshot.queries}
        told = list(self._changes(snapshot.overview))
        for decision in snapshot.news:
            name = names.get(decision["query"], "all")
            told.append(f"{name}: {brief(decision['message'])} [{decision['reason']}]")
        for query in snapshot.queries:
            told += self._query(query)
        return told

    def _changes(self, overview: Json) -> Iterator[str]:
        """Describe changes of executors; whether each is excluded or decommissioning is remembered."""
        shown = {executor["id"]: executor for executor in overview["executors"]}
        now = {id: (one["excluded"], one["decommissioning"]) for id, one in shown.items()}
        before, self._executors = self._executors or {}, now
        slots = f"slots: {overview['slots']['now']}"
        for executor, (excluded, decommissioning) in now.items():
            was_excluded, was_decommissioning = before.get(executor, (False, False))
            if executor not in before:
                yield f"executor {executor} registered; {slots}"
            if decommissioning and executor in before and not was_decommissioning:
                yield f"executor {executor} takes no new tasks; {slots}"
            if excluded and not was_excluded:
                why = shown[executor]["exclusion"]
                yield f"executor {executor} is excluded{f' ({brief(why)})' if why else ''}; {slots}"
            elif was_excluded and not excluded:
                yield f"executor {executor} is no longer excluded; {slots}"
        for executor in before.keys() - now.keys():
            yield f"executor {executor} is gone; {slots}"

    def _query(self, query: Json) -> Iterator[str]:
        count = query["lastBatch"] and query["lastBatch"]["partitions"]
        if count and self._partitions.get(query["id"]) != count:
            self._partitions[query["id"]] = count
            yield f"{title(query)}: runs with {count} partition{'' if count == 1 else 's'}"


def brief(message: str) -> str:
    """Return the start of a message: Spark's errors can contain whole plans and stack traces."""
    line = message.partition("\n")[0].strip()
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


# ---- A policy's view of a query, in words: one line in a table of queries, several for a single query.


def in_a_line(policy: Json, granted: int | None) -> str:
    """Describe in one line the slots wanted, the query's load, and when a backlog will be gone."""
    parts = [_granted_slots(policy, granted)]
    if policy["objective"] is not None:
        parts.append(f"load {_percent(policy['load'])} of {_percent(policy['objective']['load'])}")
        parts.append(f"{policy['rowsPerSecond']:,.0f} rows/s arrive")
    if policy["backlog"] is not None:
        parts.append(_backlog(policy["backlog"]))
    return ", ".join(parts)


def in_full(policy: Json, granted: int | None) -> Iterator[str]:
    """Describe a policy's view in full, with the model and the reason why there are not more slots."""
    yield f"{_granted_slots(policy, granted)}: {policy['message']} [{policy['reason']}]"
    objective, model = policy["objective"], policy["model"]
    if objective is not None:
        lag = "" if objective["maxLagMs"] is None else f", at most {duration(objective['maxLagMs'])} behind"
        most = objective["load"] + objective["loadBand"]
        yield (
            f"aims at a load of {_percent(objective['load'])}, {_percent(most)} before scaling up{lag}; "
            f"it is {_percent(policy['load'])}, {policy['rowsPerSecond']:,.0f} rows/s arrive"
        )
    if model is not None:
        yield (
            f"a micro-batch takes {duration(model['fixedMs'])} + {model['rowUs']:,.0f} µs for each row ÷ "
            f"slots, confidence {_percent(model['confidence'])}"
        )
    if policy["mostRows"] is not None:
        yield f"reads at most {policy['mostRows']:,} rows with one micro-batch"
    if policy["backlog"] is not None:
        yield f"{_backlog(policy['backlog'])}, wanted within {duration(policy['backlog']['withinMs'])}"


def _granted_slots(policy: Json, granted: int | None) -> str:
    wanted, allowed = policy["wantedSlots"], policy["allowedSlots"]
    has = "advice only" if granted is None else f"{granted} granted"
    limit = "" if wanted == allowed else f", limits allow {allowed}"
    return f"{wanted} slot{'' if wanted == 1 else 's'} wanted, {has}{limit}"


def _backlog(backlog: Json) -> str:
    gone = backlog["goneInMs"]
    when = "never gone with these slots" if gone is None else f"gone in {duration(gone)}"
    return f"{backlog['rows']:,} rows behind, {when}"


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


# In a narrow terminal, the other columns are folded before the text column.
_NARROWEST = 24
_STATES = {"Executing": "green", "Finished": "dim", "Failing": "red"}


def draw_snapshot(snapshot: Documents) -> RenderableType:
    """Draw slots, executors and queries, and the features that are off or that this Spark lacks."""
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
    """Draw the scenario's progress (0 to 1) and its next step."""
    grid = Table.grid(expand=True, padding=(0, 1))
    grid.add_column(width=7, justify="right")
    grid.add_column(ratio=1)
    grid.add_column(justify="left", min_width=28)
    grid.add_row(f"{elapsed_s:.0f} s", ProgressBar(total=1.0, completed=done), f"next: {coming}")
    return grid


def shown(text: object) -> str:
    """Return text from another source without characters that could move the terminal's cursor."""
    return "".join(c if c.isprintable() else " " for c in str(text))


def bounds(query: Json, vertex: str = "shuffle") -> str:
    """Format the bounds of a query's vertex."""
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
    """List the parts that do not fit this build of Spark."""
    for part in overview["parts"]:
        if not part["on"]:
            reason = shown(part["reason"])
            yield Text.assemble(("without ", "dim"), (shown(part["name"]), "bold"), f": {reason}")


def _lacks(overview: Json) -> Iterable[RenderableType]:
    """List what this Spark lacks and a later version has."""
    for lack in overview["lacks"]:
        words = f": {shown(lack['why'])}; {shown(lack['instead'])}"
        yield Text.assemble(("without ", "dim"), (shown(lack["what"]), "bold"), words)


def _policies(queries: Iterable[Json]) -> Iterable[RenderableType]:
    """Describe the policies' views of the running queries."""
    for query in queries:
        policy = query["policy"]
        if policy is not None and query["state"] != "Finished":
            said = in_a_line(policy, query["grantedSlots"])
            yield Text.assemble(
                (f"{shown(title(query))} ", "bold"), (f"{shown(policy['name'])}: ", "dim"), shown(said)
            )


def _silent(overview: Json) -> Iterable[RenderableType]:
    """List the custom policies that do not answer."""
    for policy in overview["customPolicies"]:
        if policy["error"] is not None:
            yield Text.assemble(
                ("no answer from ", "dim"), (shown(policy["name"]), "bold"), f": {shown(policy['error'])}"
            )


def _own_settings(queries: Iterable[Json]) -> Iterable[RenderableType]:
    """List the settings in which queries differ from the application."""
    for query in queries:
        if query["settings"]:
            own = ", ".join(f"{name} is {shown(value)}" for name, value in query["settings"].items())
            yield Text.assemble(
                (f"{shown(title(query))} ", "bold"), ("has settings of its own: ", "dim"), own
            )


def draw_queries(snapshot: Documents) -> RenderableType:
    """Draw the table of queries."""
    queries = snapshot.queries
    # Only some sources report how far behind a query is, and only adaptive mode has bounds.
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
    if query["preparing"] is not None:
        return f"preparing {text} → {query['preparing']['partitions']}"
    return text if target in (None, now) else f"{text} → {target}"


def _behind(query: Json) -> int | None:
    """Return the lag of the slowest partition, in offsets."""
    batch = query["lastBatch"]
    return batch["offsetsBehind"]["max"] if batch and batch["offsetsBehind"] else None


# ---- The output of a live view: redrawn in place in a terminal, plain lines anywhere else.


LOG_LINES = 10


class Stage:
    """Shows an application live; a context manager that restores the terminal when it ends."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._narrator = Narrator()
        self._log: deque[str] = deque(maxlen=LOG_LINES)
        self._began = time.monotonic()
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, line: str) -> None:
        """Report one line: printed at once without a terminal, else shown with the next snapshot."""
        stamped = f"{time.monotonic() - self._began:6.1f} s  {line}"
        self._log.append(stamped)
        if self._live is None:
            self._console.print(Text(stamped), soft_wrap=True)

    def show(self, snapshot: Documents, done: float | None = None, coming: str = "") -> None:
        """Show a snapshot; with `done` (0 to 1), also the scenario's progress and its next step."""
        for line in self._narrator.lines(snapshot):
            self.say(shown(line))
        if self._live is None:
            return
        parts = [draw_snapshot(snapshot), draw_log(self._log)]
        if done is not None:
            parts.append(draw_progress(done, time.monotonic() - self._began, coming))
        self._live.update(Group(*parts), refresh=True)
