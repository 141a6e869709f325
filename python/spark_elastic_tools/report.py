"""What the plugin has decided in an application, and what came of it: as text, and as HTML for notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from statistics import median
from typing import TYPE_CHECKING

from attrs import frozen

from spark_elastic.core.reasons.reason import duration
from spark_elastic_tools.client import Driver, Json, NoDriver, Source, title

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BATCHES = 10
"""Micro-batches on each side of a rescale whose median duration is compared."""
_DECISIONS = 10
_STAGES = 10
_COLUMNS = 100


@frozen
class Table:
    """A part of a report: its title, the names of its columns, and its rows; a last column may be long."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@frozen
class Report:
    """A report at one moment. Print it, or let a notebook show it; `lines` come before its `tables`."""

    lines: tuple[str, ...]
    tables: tuple[Table, ...]

    def __str__(self) -> str:
        return "\n".join((*self.lines, *(line for table in self.tables for line in _text(table))))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the report as HTML without scripts or style sheets, which notebooks would remove."""
        lines = "".join(f"<div>{html.escape(line)}</div>" for line in self.lines)
        return f"<div>{lines}{''.join(map(_html, self.tables))}</div>"


def report(spark: SparkSession, headers: Mapping[str, str] | None = None) -> Report:
    """Return what the plugin has done in this session's application.

    It asks the driver's Spark UI, with these `headers` if that wants a login. Raises NoDriver if there is
    none or the application runs without the plugin, and other kinds of Failure as the REST API answers.
    """
    from pyspark.errors import PySparkException

    try:
        url = spark.sparkContext.uiWebUrl
    except PySparkException:
        raise NoDriver(
            "this is a client of Spark Connect, whose server has the driver: "
            "type `spark-elastic status --url ADDRESS` with that of the server's Spark UI"
        ) from None
    if url is None:
        raise NoDriver(
            "the application has no Spark UI, which the report is read from: set spark.ui.enabled to true"
        )
    return report_of(Driver(url, headers))


def report_of(source: Source) -> Report:
    """Return a report on the application behind a source of the API's documents. Raises Failure."""
    overview = source.get("/overview")
    queries = source.get("/queries")["queries"]
    stages = source.get("/stages")
    decisions = source.get(f"/decisions?limit={_DECISIONS}")["decisions"]
    rescales = {q["id"]: source.get(f"/queries/{q['id']}/rescales")["rescales"] for q in queries}
    found = [
        _queries(queries, rescales),
        Table(
            "Rescales",
            ("query", "partitions", "state copied", "pause", "micro-batches"),
            tuple(row for query in queries for row in _ended(source, query, rescales[query["id"]])),
        ),
        _stages(stages["stages"]),
        Table(
            "Latest decisions",
            ("at (UTC)", "", "why"),
            tuple((_clock(d["at"]), d["name"] or (d["query"] or "")[:8], d["message"]) for d in decisions),
        ),
    ]
    return Report(tuple(_summary(overview, stages)), tuple(table for table in found if table.rows))


def _summary(overview: Json, stages: Json) -> Iterator[str]:
    executors, slots = len(overview["executors"]), overview["slots"]["now"]
    yield (
        f"spark-elastic {overview['version']} on Spark {overview['sparkVersion']}, {overview['mode']} mode: "
        f"{slots} slots on {executors} executors"
    )
    if overview["adviseOnly"]:
        yield "It only advises: nothing was changed."
    if overview["policyRestarts"]:
        yield f"The policy process was restarted {overview['policyRestarts']} times."
    if stages["unanswered"]:
        yield f"{stages['unanswered']} questions about batch stages were left to Spark's own rules."


def _queries(queries: Iterable[Json], rescales: Mapping[str, Sequence[Json]]) -> Table:
    rows = []
    for query in queries:
        last = query["lastBatch"]
        decision = query["lastDecision"]
        paused = sum(one["pausedMs"] for one in rescales[query["id"]])
        rows.append(
            (
                title(query),
                query["state"],
                "-" if query["partitions"] is None else str(query["partitions"]),
                "-" if last is None else duration(last["durationMs"]),
                f"{query['rescales']}, paused {duration(paused)}" if query["rescales"] else "0",
                str(query["restarts"]),
                "" if decision is None else decision["message"],
            )
        )
    head = ("query", "state", "partitions", "micro-batch", "rescales", "restarts", "last decision")
    return Table("Streaming queries", head, tuple(rows))


def _ended(source: Source, query: Json, rescales: Iterable[Json]) -> Iterator[tuple[str, ...]]:
    """Yield the completed rescales of a query, with the micro-batches before and after each."""
    done = [one for one in rescales if one["status"] == "completed"]
    if not done:
        return
    batches = source.get(f"/queries/{query['id']}/timeline")["batches"]
    for one in done:
        before = [b["durationMs"] for b in batches if b["at"] < one["started"]][-_BATCHES:]
        # The first micro-batch opens its stores anew.
        after = [b["durationMs"] for b in batches if b["at"] >= one["ended"]][1 : _BATCHES + 1]
        gain = f"{duration(median(before))} → {duration(median(after))}" if before and after else "-"
        yield (
            title(query),
            f"{one['partitionsBefore']} → {one['partitionsAfter']}",
            "-" if one["preparedMs"] is None else duration(one["preparedMs"]),
            duration(one["pausedMs"]),
            gain,
        )


def _stages(stages: Sequence[Json]) -> Table:
    """Show the decisions that changed the most, after their sum."""
    changed = [s for s in stages if s["before"] and s["after"] and s["before"] != s["after"]]
    changed.sort(key=lambda stage: -abs(stage["before"] - stage["after"]))
    before, after = (sum(stage[name] for stage in changed) for name in ("before", "after"))
    rows = [(f"all {len(changed)} of {len(stages)}", f"{before:,} → {after:,}", "")] if changed else []
    rows += [(s["question"], f"{s['before']:,} → {s['after']:,}", s["message"]) for s in changed[:_STAGES]]
    return Table("Batch stages", ("decision", "partitions or tasks", "why"), tuple(rows))


def _clock(at: int) -> str:
    return f"{datetime.fromtimestamp(at / 1_000, timezone.utc):%H:%M:%S}"


def _text(table: Table) -> Iterator[str]:
    rows = [table.head, *table.rows]
    widths = [max(len(row[place]) for row in rows) for place in range(len(table.head) - 1)]
    yield f"\n{table.title}"
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        begin = "  ".join(("", *cells, ""))
        yield (begin + _short(row[-1], _COLUMNS - len(begin))).rstrip()


def _short(text: str, most: int) -> str:
    most = max(most, 20)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _html(table: Table) -> str:
    def row(cells: Iterable[str], tag: str) -> str:
        style = ' style="text-align: left; vertical-align: top"'
        return "<tr>" + "".join(f"<{tag}{style}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(row(cells, "td") for cells in table.rows)
    return (
        f"<h4>{html.escape(table.title)}</h4>"
        f"<table><thead>{row(table.head, 'th')}</thead><tbody>{body}</tbody></table>"
    )
