"""Flink's autoscaler, with its defaults, on micro-batches: a query is a vertex, a slot an instance.

Source: apache/flink-kubernetes-operator, module flink-autoscaler. Its busy time is the share of time in which
a micro-batch runs. Features that do not matter here or are off by default are left out: memory, quotas,
learned scalability, the detection of ineffective scalings. Also left out, though on by default, is the rate
observed while a source had a lag, which replaces the rate derived from busy time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from attrs import Factory, define, field, frozen
from attrs.validators import ge, gt

from spark_elastic.core.policies.policy import QueryWish, Wish
from spark_elastic.core.policies.view import ClusterView, QueryMetrics, Sample
from spark_elastic_lab.simulator.rivals.rival import ADAPTIVE, window

# ---- How Flink's autoscaler aligns a parallelism with the source's partitions. Source:
# apache/flink-kubernetes-operator, ``job.autoscaler.scaling.parallelism-alignment.mode``.


Alignment = Literal["BALANCED", "EVENLY_SPREAD", "OFF"]


def align(
    mode: Alignment, current: int, wanted: int, *, partitions: int, most: int, upper: int = 2**31 - 1
) -> int:
    """Return the first parallelism at or above `wanted` that suits the partitions, else `wanted`.

    If `partitions` is 0, the number of key groups `most` is used; `upper` is the largest parallelism allowed.
    A scale-down is never aligned to more than the current parallelism.
    """
    total = partitions or most
    cap = min(total, most, upper)
    if mode == "OFF" or wanted == current:
        return wanted
    for count in range(wanted, (cap if wanted > current else min(current, cap)) + 1):
        if total % count == 0 or (mode == "BALANCED" and total // count < total // wanted):
            return count
    return wanted


# ---- The rule of Flink's autoscaler: from rates to a parallelism. Source: apache/flink-kubernetes-operator,
# module flink-autoscaler (``ScalingMetricEvaluator``, ``AutoScalerUtils``, ``JobVertexScaler``), with its
# options and their defaults.


@frozen(kw_only=True)
class FlinkOptions:
    """Options ``job.autoscaler.*``; names that end in ``_s`` are seconds.

    Utilizations that are None are `boundary` above and below the target.
    """

    target: float = 0.7
    boundary: float = 0.3
    max_utilization: float | None = None
    min_utilization: float | None = None
    catch_up_s: float = 1_800.0
    restart_s: float = 300.0
    down_factor: float = 0.6
    up_factor: float = 100_000.0
    min_parallelism: int = 1
    max_parallelism: int = 200
    backlog_s: float = 300.0

    @property
    def most_used(self) -> float:
        """The load above which it scales up."""
        return self.target + self.boundary if self.max_utilization is None else self.max_utilization

    @property
    def least_used(self) -> float:
        """The load below which it scales down."""
        return self.target - self.boundary if self.min_utilization is None else self.min_utilization


@frozen(kw_only=True)
class Rates:
    """Rates of a vertex (rows/s): its input, and its capacity while it works, infinity without work.

    `lag` is in rows; `lag_rate` is the part of it to process each second; if None, the catch-up time
    determines it. `catching_up` means that the lag exceeds the backlog threshold; then the usual utilization
    band is ignored.
    """

    target: float
    true: float
    lag: float = 0.0
    lag_rate: float | None = None
    catching_up: bool = False


@frozen(kw_only=True)
class Evaluated:
    """The result of the rule: a new parallelism, and whether the rates are outside their band."""

    capacity: float
    up: float
    down: float
    factor: float
    parallelism: int
    outside: bool


def capacity(rates: Rates, utilization: float, options: FlinkOptions, *, with_restart: bool) -> float:
    """Return the required rate at a utilization (0 to 1): input, backlog, restart."""
    if utilization <= 0:
        return math.inf
    catch_up = _catch_up(rates, options)
    restart = 0.0
    if with_restart and options.catch_up_s > 0:
        restart = rates.target * options.restart_s / options.catch_up_s
    return math.floor(catch_up + restart + rates.target / min(1.0, utilization) + 0.5)


def evaluate(rates: Rates, parallelism: int, options: FlinkOptions, scalability: float = 1.0) -> Evaluated:
    """Apply the rule; `scalability` is the share of its rate that an additional instance adds (0 to 1)."""
    most, least = (1.0, 0.0) if rates.catching_up else (options.most_used, options.least_used)
    up = capacity(rates, most, options, with_restart=False)
    down = capacity(rates, least, options, with_restart=True)
    wanted = capacity(rates, options.target, options, with_restart=True)
    factor = wanted / rates.true / scalability
    factor = min(max(factor, 1 - options.down_factor), 1 + options.up_factor)
    lower = min(parallelism, options.min_parallelism)
    upper = max(parallelism, options.max_parallelism)
    # Rounding errors must not add an instance.
    raw = math.ceil(factor * parallelism - 1e-9)
    return Evaluated(
        capacity=wanted,
        up=up,
        down=down,
        factor=factor,
        parallelism=min(max(raw, lower), upper),
        outside=rates.true < up or rates.true > down,
    )


def scalability(history: Sequence[tuple[int, float]], fewest: int = 3, least: float = 0.5) -> float:
    """Fit an additional instance's speed-up from (parallelism, true rate) pairs; 1 without enough data."""
    if len(history) < fewest:
        return 1.0
    base, rate = min(history)
    alone = rate / base
    fitted = sum(count * true for count, true in history) / (alone * sum(count**2 for count, _ in history))
    return math.ceil(min(1.0, max(least, fitted)) * 100 - 1e-9) / 100


def _catch_up(rates: Rates, options: FlinkOptions) -> float:
    if rates.lag_rate is not None:
        return rates.lag_rate
    return rates.lag / options.catch_up_s if options.catch_up_s > 0 else 0.0


_KEY_GROUPS = 128


@define
class DelayedDown:
    """Delays a step down, then takes the largest parallelism wanted within the last interval (s).

    `wanted` holds (time, parallelism, outside the band), without entries that a later one reaches or exceeds.
    """

    interval_s: float
    begun: float | None = None
    wanted: deque[tuple[float, int, bool]] = field(factory=deque)

    def clear(self) -> None:
        """Forget what was wanted."""
        self.begun = None
        self.wanted.clear()

    def ask(self, now: float, parallelism: int, *, outside: bool) -> tuple[int, bool] | None:
        """Request fewer; return the parallelism allowed now and whether it is outside the band, or None."""
        if self.begun is None:
            self.begun = now
        while self.wanted and self.wanted[-1][1] <= parallelism:
            self.wanted.pop()
        self.wanted.append((now, parallelism, outside))
        while self.wanted[0][0] < now - self.interval_s:
            self.wanted.popleft()
        if now - self.begun < self.interval_s:
            return None
        return self.wanted[0][1:]


@define
class _Vertex:
    """The state of one query: the parallelism it was given, and when (s)."""

    parallelism: int
    since: float
    down: DelayedDown


@define(kw_only=True)
class Flink:
    """The autoscaler, which decides every `interval_s`; its options are those of Flink's documentation (s).

    It decides nothing until a window of `window_s` is full, which starts `stabilization_s` after a change.
    """

    settings: ClassVar[Mapping[str, str]] = {
        **ADAPTIVE,
        "spark.elastic.adaptiveScheduler.rescalePolicy": "always",
    }

    target: float = field(default=0.7, validator=gt(0))
    catch_up_s: float = field(default=1_800.0, validator=ge(0))
    restart_s: float = field(default=300.0, validator=ge(0))
    window_s: float = field(default=900.0, validator=gt(0))
    stabilization_s: float = field(default=300.0, validator=ge(0))
    down_s: float = field(default=3_600.0, validator=ge(0))
    interval_s: float = field(default=60.0, validator=gt(0))
    alignment: Alignment = field(default="BALANCED", init=False)
    _options: FlinkOptions = field(
        init=False,
        default=Factory(
            lambda self: FlinkOptions(
                target=self.target, catch_up_s=self.catch_up_s, restart_s=self.restart_s
            ),
            takes_self=True,
        ),
    )
    _vertices: dict[str, _Vertex] = field(factory=dict, init=False)

    def decide(self, view: ClusterView) -> Wish:
        """Return the parallelism of each query."""
        now, wishes = view.at / 1_000, {}
        for name, query in view.queries.items():
            vertex = self._vertices.get(name)
            if vertex is None:
                begins = max(1, query.slots)
                vertex = self._vertices[name] = _Vertex(begins, now, DelayedDown(self.down_s))
            wanted = self._wanted(query, vertex, now)
            if wanted is not None and wanted != vertex.parallelism:
                vertex.parallelism, vertex.since = wanted, now
                vertex.down.clear()
            wishes[name] = QueryWish(slots=vertex.parallelism, reason="flink")
        return Wish(queries=wishes)

    def _wanted(self, query: QueryMetrics, vertex: _Vertex, now: float) -> int | None:
        """Return a new parallelism if a change is allowed now."""
        full = vertex.since + self.stabilization_s + self.window_s
        samples = window(query, (now - self.window_s) * 1_000)
        if now < full or len(samples) < 2:
            return None
        rates = rates_of(samples, self._options)
        if rates is None:
            return None
        current = vertex.parallelism
        found = evaluate(rates, current, self._options)
        partitions = query.samples[-1].source_tasks or 0
        wanted = align(
            self.alignment, current, found.parallelism, partitions=partitions, most=_KEY_GROUPS,
            upper=self._options.max_parallelism,
        )  # fmt: skip
        if wanted >= current:
            vertex.down.clear()
            return wanted if found.outside else None
        ripe = vertex.down.ask(now, wanted, outside=found.outside)
        return ripe[0] if ripe is not None and ripe[1] else None


def rates_of(samples: Sequence[Sample], options: FlinkOptions) -> Rates | None:
    """Compute the rates over a window of micro-batches, or return None if it has no length."""
    first, last = samples[0], samples[-1]
    seconds = (last.started - first.started) / 1_000
    if seconds <= 0:
        return None
    # The rows of a micro-batch arrived before it started.
    incoming = sum(sample.input_rows for sample in samples[1:]) / seconds
    rows = sum(sample.input_rows for sample in samples)
    busy = sum(sample.duration_ms for sample in samples) / 1_000
    lag = float(last.behind or 0)
    target = max(0.0, incoming + (lag - (first.behind or 0)) / seconds)
    true = rows / busy if rows > 0 and busy > 0 else math.inf
    return Rates(
        target=target,
        true=true,
        lag=lag,
        catching_up=incoming > 0 and lag / incoming > options.backlog_s,
    )
