"""Kubernetes' autoscaler on the load of the queries: batch time by trigger interval.

Source: Kubernetes' documentation of HorizontalPodAutoscaler (autoscaling/v2): replicas = current replicas ·
metric / target, rounded up, with a tolerance of 0.1 and a window for steps down.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import ClassVar

from attrs import define, field
from attrs.validators import ge, gt

from spark_elastic.core.policies.policy import Wish
from spark_elastic.core.policies.view import ClusterView, QueryMetrics
from spark_elastic_lab.simulator.rivals.rival import REACTIVE, TaskView

# The rule of Kubernetes' HorizontalPodAutoscaler (autoscaling/v2) for one external metric.
# As its documentation has it: replicas = metric / target of one replica, rounded up; nothing is done within a
# tolerance of 0.1; of what was recommended within a window the least counts for going up and the most for
# going down. Without a value nothing is done.


TOLERANCE = 0.1


@define(kw_only=True)
class Hpa:
    """An autoscaler; `target` is what one replica is for, the windows are seconds."""

    target: float
    least: int
    most: int
    up_s: float
    down_s: float
    # What was recommended, and when (seconds).
    _recommended: deque[tuple[float, int]] = field(factory=deque)

    def replicas(self, current: int, value: float | None, now: float) -> int:
        """Return how many there should be, with `current` there and the metric at `value`."""
        if value is None:
            return current
        wanted = current
        if current == 0 or abs(value / (self.target * current) - 1) > TOLERANCE:
            wanted = math.ceil(value / self.target)
        wanted = max(self.least, min(self.most, wanted))
        self._recommended.append((now, wanted))
        while self._recommended[0][0] < now - max(self.up_s, self.down_s):
            self._recommended.popleft()
        up = min(count for at, count in self._recommended if at >= now - self.up_s)
        down = max(count for at, count in self._recommended if at >= now - self.down_s)
        return min(max(current, up), down)


@define(kw_only=True)
class LoadHpa:
    """Keeps the load of the busiest query at `target`, from `least` to `most` executors.

    It looks each `interval_s` (s); `stabilization_s` (s) is the window for steps down.
    """

    settings: ClassVar[Mapping[str, str]] = REACTIVE

    most: int = field(validator=ge(1))
    target: float = field(default=0.75, validator=gt(0))
    least: int = field(default=1, validator=ge(1))
    interval_s: float = field(default=15.0, validator=gt(0))
    stabilization_s: float = field(default=300.0, validator=ge(0))
    _rule: Hpa = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._rule = Hpa(
            target=self.target, least=self.least, most=self.most, up_s=0, down_s=self.stabilization_s
        )

    def decide(self, view: ClusterView) -> Wish:
        """Return as many executors as bring the load to the target."""
        loads = [load for query in view.queries.values() if (load := _load(query)) is not None]
        current = len(view.executors)
        # For the rule the metric is that of all replicas together.
        value = max(loads) * current if loads else None
        return Wish(executors=max(self.least, self._rule.replicas(current, value, view.at / 1_000)))


def _load(query: QueryMetrics) -> float | None:
    latest = query.latest
    if query.idle:
        return 0.0
    if latest is None:
        return None
    interval = max(query.facts.trigger_ms, 1)
    return latest.duration_ms / interval if query.facts.trigger_ms else latest.busy


# KEDA's scaler on the lag of a Kafka topic, through Kubernetes' autoscaler.
# Source: KEDA's documentation of the scaler ``apache-kafka``, and Kubernetes' of HorizontalPodAutoscaler
# (autoscaling/v2): replicas = lag / threshold, rounded up, at most as many as the topic has partitions; the
# lag is polled, and a step down takes the most that was recommended within five minutes.


@define(kw_only=True)
class Keda:
    """One executor for each `threshold` rows of lag, from `least` to `most`; looks each `interval_s` (s).

    `stabilization_s` (s) is the window for steps down.
    """

    settings: ClassVar[Mapping[str, str]] = REACTIVE

    threshold: float = field(validator=gt(0))
    most: int = field(validator=ge(1))
    least: int = field(default=1, validator=ge(1))
    interval_s: float = field(default=30.0, validator=gt(0))
    stabilization_s: float = field(default=300.0, validator=ge(0))
    _rule: Hpa = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._rule = Hpa(
            target=self.threshold, least=self.least, most=self.most, up_s=0, down_s=self.stabilization_s
        )

    def decide(self, view: ClusterView) -> Wish:
        """Return as many executors as the lag of all queries calls for."""
        assert isinstance(view, TaskView)
        lag = float(sum(view.uncommitted.values()))
        current = len(view.executors) if view.requested is None else view.requested
        return Wish(executors=self._rule.replicas(current, lag, view.at / 1_000))
