"""What the metrics say of each query: name, kind, sentence, and the value, None where nobody knows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from spark_elastic.core.events import QueryProgress
from spark_elastic.core.keys.records import TARGET_LOAD
from spark_elastic.core.load.demand import desired_slots, load
from spark_elastic.core.query.view import QueryView
from spark_elastic.runtime.view import View

QueryMetric = tuple[str, Literal["gauge", "counter"], str, Callable[[QueryView, View], float | None]]


def _latest(of: Callable[[QueryProgress], float | None]) -> Callable[[QueryView, View], float | None]:
    """Look at the last micro-batch, if there was one."""
    return lambda query, _: None if query.last_progress is None else of(query.last_progress)


def _input_rate(query: QueryView, _: View) -> float | None:
    pace = query.workload.pace
    if pace.idle:
        return 0.0
    return None if pace.latest is None else pace.latest.input_rows_per_second


def _interval(query: QueryView, _: View) -> float | None:
    return query.facts.trigger_ms / 1_000 if query.facts.trigger_ms > 0 else None


def _event_time_lag(progress: QueryProgress) -> float | None:
    return None if progress.event_time_lag_ms is None else progress.event_time_lag_ms / 1_000


QUERY_METRICS: Sequence[QueryMetric] = (
    ("partitions", "gauge", "Shuffle partitions in force.", lambda query, _: query.partitions),
    (
        "lower_bound",
        "gauge",
        "Fewest partitions that the query may have.",
        lambda query, _: query.requirements.lower,
    ),
    (
        "upper_bound",
        "gauge",
        "Most partitions that the query may have.",
        lambda query, _: query.requirements.upper,
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
        lambda query, _: load(query.workload),
    ),
    (
        "desired_slots",
        "gauge",
        "Slots that the query needs for the target load, within its bounds.",
        lambda query, view: desired_slots(query.workload, view.settings[TARGET_LOAD]),
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
        "Time from the newest event time that the last micro-batch has read to its begin.",
        _latest(_event_time_lag),
    ),
    (
        "restarts_total",
        "counter",
        "How often the query was started again after a failure.",
        lambda query, view: view.totals.queries[query.facts.query].restarted,
    ),
    (
        "rescales_total",
        "counter",
        "How often the state of the query was moved to another number of partitions.",
        lambda query, view: view.totals.queries[query.facts.query].rescaled,
    ),
    (
        "paused_seconds_total",
        "counter",
        "Time for which ended rescales and retries kept the query from running.",
        lambda query, view: view.totals.queries[query.facts.query].paused_ms / 1_000,
    ),
)
"""All but those with labels of their own."""


def in_states(query: QueryView, view: View) -> Mapping[str, float]:
    """Return how long the query was in each state that it has been in, in seconds, up to the last event."""
    stayed = view.totals.queries[query.facts.query].stayed_ms
    here = max(0, view.at - query.entered)
    return {
        state: ms / 1_000
        for state, ms in sorted({**stayed, query.state: stayed.get(query.state, 0) + here}.items())
    }
