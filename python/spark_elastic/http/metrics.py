"""The policy's metrics for monitoring systems: Prometheus, and those that Spark's metrics system supports.

An unknown value has no sample. Counters count since this policy process started, and never decrease.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Literal, get_args

from attrs import frozen

from spark_elastic.core.events import QueryProgress
from spark_elastic.core.keys.application import TARGET_LOAD
from spark_elastic.core.query.demand import (
    Workload,
    busy,
    desired_slots,
    executors_for,
    load,
    together,
)
from spark_elastic.core.query_view import QueryView
from spark_elastic.core.rescale.history import Cause, Status
from spark_elastic.core.transitions import FINISHED
from spark_elastic.runtime.publisher import DECISION_BUCKETS, Tally, Totals, View

# ---- The metrics of each query: name, kind, description, and the value, None if it is unknown.


@frozen
class Shown:
    """One query, what its load depends on, and its totals; `target` is the highest load it should have."""

    query: QueryView
    workload: Workload
    tally: Tally
    target: float

    @classmethod
    def of(cls, query: QueryView, view: View) -> Shown:
        """Return a query of a view with its workload and totals."""
        tally = view.totals.queries[query.facts.query]
        return cls(query, query.workload(), tally, view.settings[TARGET_LOAD])

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of all metrics of this query."""
        return {"query": self.query.facts.query, "name": self.query.facts.name or ""}

    @property
    def desired_slots(self) -> int | None:
        """The slots that the query needs for the target load."""
        return desired_slots(self.workload, self.target)

    def in_states(self, at: int) -> Mapping[str, float]:
        """Return the time spent in each state so far, in seconds, up to `at` (epoch ms)."""
        stayed, state = self.tally.stayed_ms, self.query.state
        here = max(0, at - self.query.entered)
        return {
            name: ms / 1_000 for name, ms in sorted({**stayed, state: stayed.get(state, 0) + here}.items())
        }


Value = Callable[[Shown], float | None]


def _latest(of: Callable[[QueryProgress], float | None]) -> Value:
    """Return a function that reads a value of the last micro-batch, or returns None if there was none."""
    return lambda s: None if s.query.last_progress is None else of(s.query.last_progress)


def _input_rate(shown: Shown) -> float | None:
    pace = shown.query.pace
    if pace.idle:
        return 0.0
    return None if pace.latest is None else pace.latest.input_rows_per_second


def _interval(shown: Shown) -> float | None:
    interval = shown.query.facts.trigger_ms
    return interval / 1_000 if interval > 0 else None


def _event_time_lag(progress: QueryProgress) -> float | None:
    return None if progress.event_time_lag_ms is None else progress.event_time_lag_ms / 1_000


QUERY_METRICS: Sequence[tuple[str, Literal["gauge", "counter"], str, Value]] = (
    ("partitions", "gauge", "Shuffle partitions in force.", lambda s: s.query.partitions),
    (
        "lower_bound",
        "gauge",
        "Fewest partitions that the query may have.",
        lambda s: s.query.declared.lower,
    ),
    (
        "upper_bound",
        "gauge",
        "Most partitions that the query may have.",
        lambda s: s.query.declared.upper,
    ),
    (
        "granted_slots",
        "gauge",
        "Slots that spark.elastic.policy lets the query have.",
        lambda s: s.query.granted_slots,
    ),
    (
        "input_rows_per_second",
        "gauge",
        "Rows that the last micro-batch has read, by the time since the one before it began.",
        _input_rate,
    ),
    (
        "processed_rows_per_second",
        "gauge",
        "Rows that the last micro-batch has read, by the time that it took.",
        _latest(lambda progress: progress.processed_rows_per_second),
    ),
    (
        "batch_seconds",
        "gauge",
        "Time that the last micro-batch took.",
        _latest(lambda progress: progress.duration_ms / 1_000),
    ),
    ("trigger_interval_seconds", "gauge", "Time between two triggers.", _interval),
    (
        "load_ratio",
        "gauge",
        "Time of the last micro-batch by its trigger interval; above 1 input rate by processing rate. "
        "Without an interval: that ratio, less the part of a micro-batch that does not grow with its rows.",
        lambda s: load(s.workload),
    ),
    (
        "desired_slots",
        "gauge",
        "Slots that the query needs for the target load, within its bounds and what its sources can use.",
        lambda s: s.desired_slots,
    ),
    (
        "records_behind",
        "gauge",
        "Records that the partition furthest behind has not read, as of the last micro-batch.",
        _latest(lambda progress: None if progress.offsets_behind is None else progress.offsets_behind.max),
    ),
    (
        "backlog_records",
        "gauge",
        "Records that all partitions together have not read, as of the last micro-batch.",
        _latest(lambda progress: progress.records_behind),
    ),
    (
        "event_time_lag_seconds",
        "gauge",
        "Time between the newest event time in the last micro-batch and the start of that batch.",
        _latest(_event_time_lag),
    ),
    (
        "restarts_total",
        "counter",
        "How often the query was started again after a failure.",
        lambda s: s.tally.restarted,
    ),
    (
        "rescales_total",
        "counter",
        "How often the state of the query was moved to another number of partitions.",
        lambda s: s.tally.rescaled,
    ),
    (
        "paused_seconds_total",
        "counter",
        "Time for which ended rescales and retries kept the query from running.",
        lambda s: s.tally.paused_ms / 1_000,
    ),
)
"""All metrics of a query, except those with labels of their own."""


# A counter that began with its first event would hide that event from rates: they all begin with 0.
_CAUSES: Sequence[Cause] = sorted(get_args(Cause))
_ENDED: Sequence[Status] = sorted(set(get_args(Status)) - {"in_progress"})
Sample = tuple[Mapping[str, str], float]
Kind = Literal["gauge", "counter", "histogram"]
# Characters that cannot be used in one part of a metric's name in every monitoring system.
_OTHERS = re.compile(r"[^A-Za-z0-9_-]")


@frozen
class Metric:
    """One metric: a value for each set of labels.

    The samples of a histogram are its buckets, cumulative up to each bound; `total` is the sum of all values.
    """

    name: str
    kind: Kind
    doc: str
    samples: Sequence[Sample]
    total: float = 0.0


def metrics(view: View) -> Iterator[Metric]:
    """Return all metrics, each with its description."""
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
        [
            ({"cause": cause, "status": status}, totals.rescales.get((cause, status), 0))
            for cause in _CAUSES
            for status in _ENDED
        ],
    )
    yield Metric(
        "paused_seconds_total",
        "counter",
        "Time for which ended rescales and retries kept queries from running.",
        [({"cause": cause}, totals.paused.get(cause, 0.0)) for cause in _CAUSES],
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
    """Return all metrics under a name that includes their labels: ``rescales_total.new_resources.completed``.

    A query appears under its name, or under its id if the name is missing or not unique.
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
