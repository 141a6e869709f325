"""The policy in metrics, for monitoring systems: Prometheus', and those that Spark's metrics system knows.

A value that nobody knows has no sample. Counters count since this policy process began, and never fall.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Literal

from attrs import frozen

from spark_elastic.core.load.demand import busy, executors_for, together
from spark_elastic.core.query.transitions import FINISHED
from spark_elastic.rest.query_metrics import QUERY_METRICS, Shown
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
    queries = [Shown.of(query, view) for query in view.queries.values() if query.state != FINISHED]
    labels = [query.labels for query in queries]
    yield from _of_the_application(view, queries)
    for name, kind, doc, of in QUERY_METRICS:
        values = zip(labels, map(of, queries), strict=True)
        yield Metric(f"query_{name}", kind, doc, [(n, value) for n, value in values if value is not None])
    stays = [
        ({**n, "state": state}, seconds)
        for n, query in zip(labels, queries, strict=True)
        for state, seconds in query.in_states(view.at).items()
    ]
    yield Metric("query_state_seconds_total", "counter", "Time in each state of its life.", stays)
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
    custom = [({"policy": name}, metrics) for name, metrics in view.custom_policies.items()]
    yield Metric(
        "custom_policy_answers_total",
        "counter",
        "Answers of a custom policy that could be used.",
        [(label, metrics.answers) for label, metrics in custom],
    )
    yield Metric(
        "custom_policy_failures_total",
        "counter",
        "Questions to which a custom policy had no answer that could be used.",
        [(label, metrics.failures) for label, metrics in custom],
    )
    yield Metric(
        "policy_restarts_total", "counter", "Policy processes before this one.", [({}, view.restarts)]
    )


def _of_the_application(view: View, queries: Sequence[Shown]) -> Iterator[Metric]:
    share = together(busy(query.workload) for query in queries)
    slots = together(query.desired_slots for query in queries)
    executors = None if slots is None else executors_for(int(slots), view.usable.values(), view.usual_slots)
    for name, doc, value in (
        ("slots", "Slots that tasks can use.", view.slots),
        ("executors", "Executors known to the driver.", len(view.executors)),
        (
            "busy_ratio",
            "Share of the slots' time that micro-batches take, from 0 to 1.",
            None if share is None else min(1.0, share),
        ),
        ("desired_slots", "Slots that all queries need together for the target load.", slots),
        ("desired_executors", "Executors that have the desired slots.", executors),
    ):
        yield Metric(name, "gauge", doc, [] if value is None else [({}, value)])


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
                which = own if own and named[own] == 1 else labels["query"]
                parts = [which, *(text for label, text in labels.items() if label not in ("query", "name"))]
            found[".".join((metric.name, *map(_part, parts)))] = value
    return found


def _part(text: str) -> str:
    return _OTHERS.sub("_", text)
