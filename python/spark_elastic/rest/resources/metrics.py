"""GET /elastic/metrics: figures in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import falcon
from attrs import frozen

from spark_elastic.core.query.transitions import FINISHED
from spark_elastic.rest.lookup import current
from spark_elastic.runtime.board import Board
from spark_elastic.runtime.view import DECISION_BUCKETS, Figures, View

_TEXT = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[dict[str, str], float]


@frozen
class Metrics:
    """What a monitoring system collects."""

    board: Board

    def on_get(self, _: falcon.Request, response: falcon.Response) -> None:
        """Show all figures."""
        response.content_type = _TEXT
        response.text = "".join(_lines(current(self.board)))


def _lines(view: View) -> Iterator[str]:
    queries = [query for query in view.queries.values() if query.state != FINISHED]
    names = [{"query": query.facts.query, "name": query.facts.name or ""} for query in queries]
    yield from _metric("slots", "gauge", "Slots that tasks can use.", [({}, view.slots)])
    yield from _metric("executors", "gauge", "Executors known to the driver.", [({}, len(view.executors))])
    yield from _metric(
        "query_partitions",
        "gauge",
        "Shuffle partitions in force.",
        [(n, q.partitions) for n, q in zip(names, queries, strict=True) if q.partitions is not None],
    )
    yield from _metric(
        "query_lower_bound",
        "gauge",
        "Fewest partitions that the query may have.",
        [(n, q.requirements.lower) for n, q in zip(names, queries, strict=True)],
    )
    yield from _metric(
        "query_upper_bound",
        "gauge",
        "Most partitions that the query may have.",
        [(n, q.requirements.upper) for n, q in zip(names, queries, strict=True)],
    )
    yield from _metric(
        "query_restarts_total",
        "counter",
        "Restarts of the query, for another count or after a failure.",
        [(n, q.restarted) for n, q in zip(names, queries, strict=True)],
    )
    yield from _metric(
        "query_records_behind",
        "gauge",
        "Records that the partition furthest behind has not read, as of the last micro-batch.",
        [
            (n, q.last_progress.offsets_behind.max)
            for n, q in zip(names, queries, strict=True)
            if q.last_progress is not None and q.last_progress.offsets_behind is not None
        ],
    )
    figures = view.figures
    yield from _metric(
        "rescales_total",
        "counter",
        "Rescales that have ended.",
        [({"cause": cause, "status": status}, n) for (cause, status), n in sorted(figures.rescales.items())],
    )
    yield from _metric(
        "paused_seconds_total",
        "counter",
        "Time for which ended rescales and restarts kept queries from running.",
        [({"cause": cause}, seconds) for cause, seconds in sorted(figures.paused.items())],
    )
    yield from _decision_times(figures)
    yield from _metric(
        "policy_restarts_total", "counter", "Policy processes before this one.", [({}, view.restarts)]
    )


def _decision_times(figures: Figures) -> Iterator[str]:
    total, samples = 0, []
    for end, count in zip((*DECISION_BUCKETS, float("inf")), figures.decision_buckets, strict=True):
        total += count
        samples.append(("_bucket", {"le": "+Inf" if end == float("inf") else f"{end:g}"}, total))
    yield from _head("decision_seconds", "histogram", "Time to decide about one event.")
    for suffix, labels, value in samples:
        yield _sample("decision_seconds" + suffix, labels, value)
    yield _sample("decision_seconds_sum", {}, figures.decision_seconds)
    yield _sample("decision_seconds_count", {}, total)


def _metric(name: str, kind: str, doc: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield from _head(name, kind, doc)
    for labels, value in samples:
        yield _sample(name, labels, value)


def _head(name: str, kind: str, doc: str) -> Iterator[str]:
    yield f"# HELP spark_elastic_{name} {doc}\n# TYPE spark_elastic_{name} {kind}\n"


def _sample(name: str, labels: dict[str, str], value: float) -> str:
    pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"spark_elastic_{name}{{{pairs}}} {value}\n" if pairs else f"spark_elastic_{name} {value}\n"


def _escaped(text: str) -> str:
    # A lone half of a surrogate pair, which Java allows in a name, is no text outside of Java.
    whole = text.encode("utf-8", "replace").decode()
    return whole.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
