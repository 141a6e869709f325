"""Advice as one self-contained HTML page: nothing is loaded from elsewhere, and no script runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from spark_elastic.core.reasons.reason import duration
from spark_elastic_lab.advice.advice import Advice
from spark_elastic_lab.advice.drawing import Curve, chart, steps
from spark_elastic_lab.advice.queries import QueryReport
from spark_elastic_lab.advice.text import NAMES, amount, as_text, defaults
from spark_elastic_lab.advice.told import QueryLog
from spark_elastic_lab.advice.what_if import WhatIf

_BLUE, _ORANGE, _GREEN, _GREY, _RED = "#1f77b4", "#ff7f0e", "#2ca02c", "#888888", "#d62728"
_COLOURS = {"recorded": _GREY, "reactive": _BLUE, "declared": _GREEN, "autoscale": _ORANGE}
_STAGES = 50
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
body{color:#222;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.2rem;border-top:1px solid #ddd;padding-top:1rem}
table{border-collapse:collapse}td,th{padding:.2rem .8rem;border-bottom:1px solid #ddd;text-align:right}
td:first-child,th:first-child,td.text{text-align:left}
figure{margin:1rem 0}figcaption small{color:#555}figcaption span{margin-left:1rem}
i{display:inline-block;width:.8em;height:.8em;margin-right:.3em}
svg text{font:11px system-ui,sans-serif;fill:#555}.grid{stroke:#ddd}
pre{background:#f5f5f5;padding:.8rem;overflow-x:auto}
"""


def as_page(advice: Sequence[Advice], lines: Mapping[str, str] | None) -> str:
    """Return the page about some logs; `lines` are the settings that turn the plugin on, None if unknown."""
    body = "".join(part for one in advice for part in _log(one, lines))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>spark-elastic advise</title>'
        f"<style>{_STYLE}</style></head><body>{body}</body></html>\n"
    )


def _log(advice: Advice, lines: Mapping[str, str] | None) -> Iterator[str]:
    yield f"<h1>{escape(advice.name or advice.log)}</h1>"
    yield (
        f"<p>{escape(advice.application or advice.log)}, Spark {escape(advice.spark or '?')}, "
        f"{duration(advice.hours * 3_600_000)}, {advice.executor_hours:.3g} executor-hours</p>"
    )
    begin = None
    if advice.what_if is not None:
        yield "<h2>The same load with the plugin</h2>"
        yield from _what_if(advice.what_if, advice)
    for query in advice.queries:
        log = advice.logs[query.query]
        begin = log.batches[0].started
        yield f"<h2>Query {escape(query.name)}</h2>"
        yield _findings(query)
        yield from _pictures(query, log, begin)
    if advice.batch.worst:
        yield "<h2>Batch stages that lost time</h2>"
        yield _stages(advice)
    yield "<h2>To begin with</h2>"
    yield f"<p>{escape(advice.proposal.why)}.</p>"
    settings = "\n".join(f"{key}  {value}" for key, value in defaults(advice, lines).items())
    yield f"<pre>{escape(settings)}</pre>"
    if advice.proposal.policy_file is not None:
        yield f"<p>A policy file for adaptive mode:</p><pre>{escape(advice.proposal.policy_file)}</pre>"
    yield "<h2>As text</h2>"
    text = escape(as_text(advice, lines))
    yield f"<details><summary>everything, as on the command line</summary><pre>{text}</pre></details>"


def _what_if(what: WhatIf, advice: Advice) -> Iterator[str]:
    names = list(what.costs)
    head = ["", "executor-hours", "outside", "largest lag", *(f"{name}: micro-batch" for name in names)]
    if advice.price is not None:
        head.insert(2, "cost")
    rows = []
    for one in what.outcomes:
        row = [NAMES.get(one.policy, one.policy), f"{one.executor_hours:.3g}", f"{one.outside_percent:.1f} %"]
        row += [duration(one.largest_lag_s * 1_000)]
        row += [duration(one.batch_ms[name]) if name in one.batch_ms else "–" for name in names]
        if advice.price is not None:
            row.insert(2, amount(one.core_hours * advice.price))
        rows.append(row)
    yield _table(head, rows)
    seconds = advice.hours * 3_600
    yield chart(
        "executors",
        "",
        [
            steps(NAMES.get(one.policy, one.policy), one.executors, seconds * 1_000, _COLOURS[one.policy])
            for one in what.outcomes
        ],
        seconds,
    )
    for name, load in what.loads.items():
        points = [(float(second), load.rate(second)) for second in range(len(load.rates))]
        yield chart(
            f"load of {name}", "rows/s", [Curve(name="rows per second", points=points, colour=_BLUE)], seconds
        )


def _pictures(query: QueryReport, log: QueryLog, begin: int) -> Iterator[str]:
    batches = log.batches
    seconds = max(1.0, (batches[-1].reported - begin) / 1_000)
    took = [((one.started - begin) / 1_000, one.took_ms / 1_000) for one in batches]
    curves = [Curve(name="micro-batch", points=took, colour=_BLUE, kind="dots")]
    if query.trigger.interval_ms:
        interval = query.trigger.interval_ms / 1_000
        curves.append(
            Curve(
                name="trigger interval",
                points=[(0, interval), (seconds, interval)],
                colour=_RED,
                kind="limit",
            )
        )
    yield chart("duration of micro-batches", "s", curves, seconds)
    slots = [((one.started - begin) / 1_000, float(one.slots)) for one in batches]
    busy = [
        ((one.started - begin) / 1_000, (one.read.task_ms + one.work.task_ms) / max(1, one.took_ms))
        for one in batches
    ]
    yield chart(
        "slots while micro-batches ran",
        "",
        [
            Curve(name="there", points=slots, colour=_GREY),
            Curve(name="with a task, the mean", points=busy, colour=_GREEN, kind="dots"),
        ],
        seconds,
    )


def _findings(query: QueryReport) -> str:
    texts = [finding.text for finding in query.findings] or ["nothing found that is worth a change"]
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"


def _stages(advice: Advice) -> str:
    rows = [
        [
            f"{stage.stage} {stage.name}",
            str(stage.tasks),
            "–" if stage.wanted is None else str(stage.wanted),
            duration(stage.wall_ms),
            duration(stage.lost_ms),
            stage.text,
        ]
        for stage in advice.batch.worst[:_STAGES]
    ]
    return _table(["stage", "tasks", "advised", "took", "lost", ""], rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    heads = "".join(f"<th>{escape(text)}</th>" for text in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in rows)
    return f"<table><tr>{heads}</tr>{body}</table>"
