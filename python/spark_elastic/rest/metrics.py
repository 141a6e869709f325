"""The policy in metrics, for monitoring systems: Prometheus', and those that Spark's metrics system knows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Literal

from attrs import frozen

from spark_elastic.core.query.transitions import FINISHED
from spark_elastic.runtime.view import DECISION_BUCKETS, Totals, View

Sample = tuple[Mapping[str, str], float]
Kind = Literal["gauge", "counter", "histogram"]
# What may stand in one part of the name of a metric, whoever collects it.
_OTHERS = re.compile(r"[^A-Za-z0-9_-]")


@frozen
class Metric:
    """One metric: a value for each set of labels.

    The samples of a histogram are those of its buckets, up to each end; `total` is the sum of all values.
    """

    name: str
    kind: Kind
    doc: str
    samples: Sequence[Sample]
    total: float = 0.0


def metrics(view: View) -> Iterator[Metric]:
    """Return all metrics, each with what it is."""
    queries = [query for query in view.queries.values() if query.state != FINISHED]
    names = [{"query": query.facts.query, "name": query.facts.name or ""} for query in queries]
    yield Metric("slots", "gauge", "Slots that tasks can use.", [({}, view.slots)])
    yield Metric("executors", "gauge", "Executors known to the driver.", [({}, len(view.executors))])
    yield Metric(
        "query_partitions",
        "gauge",
        "Shuffle partitions in force.",
        [(n, q.partitions) for n, q in zip(names, queries, strict=True) if q.partitions is not None],
    )
    yield Metric(
        "query_lower_bound",
        "gauge",
        "Fewest partitions that the query may have.",
        [(n, q.requirements.lower) for n, q in zip(names, queries, strict=True)],
    )
    yield Metric(
        "query_upper_bound",
        "gauge",
        "Most partitions that the query may have.",
        [(n, q.requirements.upper) for n, q in zip(names, queries, strict=True)],
    )
    yield Metric(
        "query_restarts_total",
        "counter",
        "How often the query was started again after a failure.",
        [(n, q.restarted) for n, q in zip(names, queries, strict=True)],
    )
    yield Metric(
        "query_rescales_total",
        "counter",
        "How often the state of the query was moved to another number of partitions.",
        [(n, q.rescaled) for n, q in zip(names, queries, strict=True)],
    )
    yield Metric(
        "query_records_behind",
        "gauge",
        "Records that the partition furthest behind has not read, as of the last micro-batch.",
        [
            (n, q.last_progress.offsets_behind.max)
            for n, q in zip(names, queries, strict=True)
            if q.last_progress is not None and q.last_progress.offsets_behind is not None
        ],
    )
    totals = view.totals
    yield Metric(
        "rescales_total",
        "counter",
        "Rescales that have ended.",
        [({"cause": cause, "status": status}, n) for (cause, status), n in sorted(totals.rescales.items())],
    )
    yield Metric(
        "paused_seconds_total",
        "counter",
        "Time for which ended rescales and retries kept queries from running.",
        [({"cause": cause}, seconds) for cause, seconds in sorted(totals.paused.items())],
    )
    yield _decision_times(totals)
    yield Metric(
        "policy_restarts_total", "counter", "Policy processes before this one.", [({}, view.restarts)]
    )


def _decision_times(totals: Totals) -> Metric:
    ends = [*(f"{end:g}" for end in DECISION_BUCKETS), "+Inf"]
    counts = accumulate(totals.decision_buckets)
    samples = [({"le": end}, count) for end, count in zip(ends, counts, strict=True)]
    doc = "Time to decide about one event."
    return Metric("decision_seconds", "histogram", doc, samples, totals.decision_seconds)


def flat(view: View) -> dict[str, float]:
    """Return all metrics by a name that has its labels in it: ``rescales_total.new_resources.completed``.

    A query is called by its name, or by its id where the name is not its own.
    """
    queries = [query for query in view.queries.values() if query.state != FINISHED]
    named = Counter(_part(query.facts.name or "") for query in queries)
    found: dict[str, float] = {}
    for metric in metrics(view):
        if metric.kind == "histogram":
            found[f"{metric.name}_count"] = metric.samples[-1][1]
            found[f"{metric.name}_sum"] = metric.total
            continue
        for labels, value in metric.samples:
            parts = list(labels.values())
            if "query" in labels:
                own = _part(labels["name"])
                parts = [own if own and named[own] == 1 else labels["query"]]
            found[".".join((metric.name, *map(_part, parts)))] = value
    return found


def _part(text: str) -> str:
    return _OTHERS.sub("_", text)
