"""What the metrics say of each query: name, kind, sentence, and the value, None where nobody knows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from attrs import frozen

from spark_elastic.core.events import QueryProgress
from spark_elastic.core.keys.application import TARGET_LOAD
from spark_elastic.core.load.demand import Workload, desired_slots, load
from spark_elastic.core.query.view import QueryView
from spark_elastic.runtime.tallies import Tally
from spark_elastic.runtime.view import View


@frozen
class Shown:
    """One query, what its load depends on, and its totals; the load is to be `target` at most."""

    query: QueryView
    workload: Workload
    tally: Tally
    target: float

    @classmethod
    def of(cls, query: QueryView, view: View) -> Shown:
        """Look at a query of a view."""
        tally = view.totals.queries[query.facts.query]
        return cls(query, query.workload(), tally, view.settings[TARGET_LOAD])

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of all its metrics."""
        return {"query": self.query.facts.query, "name": self.query.facts.name or ""}

    @property
    def desired_slots(self) -> int | None:
        """The slots that it needs for the target load."""
        return desired_slots(self.workload, self.target)

    def in_states(self, at: int) -> Mapping[str, float]:
        """Return how long it was in each state that it has been in, in seconds, up to `at` (epoch ms)."""
        stayed, state = self.tally.stayed_ms, self.query.state
        here = max(0, at - self.query.entered)
        return {
            name: ms / 1_000 for name, ms in sorted({**stayed, state: stayed.get(state, 0) + here}.items())
        }


Value = Callable[[Shown], float | None]


def _latest(of: Callable[[QueryProgress], float | None]) -> Value:
    """Look at the last micro-batch, if there was one."""
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
        "Time from the newest event time that the last micro-batch has read to its begin.",
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
"""All but those with labels of their own."""
