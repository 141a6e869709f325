"""Flink's autoscaler, with its defaults, on micro-batches: a query is a vertex, a slot an instance.

Source: apache/flink-kubernetes-operator, module flink-autoscaler. Its busy time is the part of the time in
which a micro-batch runs. Left out is what does not count here or is off by default: memory, quotas, learned
scalability, the detection of ineffective scalings. Left out as well, though it is on by default, is the rate
that was observed while a source had a lag, which replaces the one that follows from busy time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import ClassVar

from attrs import Factory, define, field
from attrs.validators import ge, gt

from spark_elastic.core.policies.policy import QueryWish, Wish
from spark_elastic.core.policies.view import ClusterView, QueryMetrics, Sample
from spark_elastic.simulator.rivals.flink_alignment import Alignment, align
from spark_elastic.simulator.rivals.flink_rule import FlinkOptions, Rates, evaluate
from spark_elastic.simulator.rivals.rival import ADAPTIVE, window

_KEY_GROUPS = 128


@define
class DelayedDown:
    """Waits before a step down, then goes to the most that was wanted in the last interval (s).

    `wanted` are (time, parallelism, outside of the band), of which only those count that no later one
    exceeds.
    """

    interval_s: float
    begun: float | None = None
    wanted: deque[tuple[float, int, bool]] = field(factory=deque)

    def clear(self) -> None:
        """Forget what was wanted."""
        self.begun = None
        self.wanted.clear()

    def ask(self, now: float, parallelism: int, *, outside: bool) -> tuple[int, bool] | None:
        """Want fewer; return what may be done by now, and whether it is outside of the band, else None."""
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
    """What is remembered of one query: the parallelism that it was given, and when it began with it (s)."""

    parallelism: int
    since: float
    down: DelayedDown


@define(kw_only=True)
class Flink:
    """The autoscaler, which looks each `interval_s`; the options are those of its documentation (s).

    Nothing is decided before a window of `window_s` is full, which begins `stabilization_s` after a change.
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
        """Return another parallelism if it is time for one."""
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
    """Compute the rates over a window of micro-batches, None where it has no length."""
    first, last = samples[0], samples[-1]
    seconds = (last.started - first.started) / 1_000
    if seconds <= 0:
        return None
    # The rows of a micro-batch have come before it began.
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
