"""Kubernetes' autoscalers on the load of the queries (batch time ÷ trigger interval) or on their lag.

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

# ---- The rule of Kubernetes' HorizontalPodAutoscaler (autoscaling/v2) for one external metric. According to
# its documentation, replicas = metric / target of one replica, rounded up; nothing changes within a tolerance
# of 0.1. Of the recommendations within a window, the lowest applies to steps up and the highest to steps
# down. Without a value nothing changes.


TOLERANCE = 0.1


@define(kw_only=True)
class Hpa:
    """An autoscaler; `target` is the metric's target for one replica, the windows are seconds."""

    target: float
    least: int
    most: int
    up_s: float
    down_s: float
    # The recommendations and their times (seconds).
    _recommended: deque[tuple[float, int]] = field(factory=deque)

    def replicas(self, current: int, value: float | None, now: float) -> int:
        """Return the desired replicas, given `current` replicas and the metric's value."""
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
    """Keeps the load of the busiest query at `target`, with `least` to `most` executors.

    It decides every `interval_s` (s); `stabilization_s` (s) is the window for steps down.
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
        """Return the executors that bring the load to the target."""
        loads = [load for query in view.queries.values() if (load := _load(query)) is not None]
        current = len(view.executors)
        # The rule expects the metric of all replicas together.
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


# ---- KEDA's scaler on the lag of a Kafka topic, through Kubernetes' autoscaler. Source: KEDA's documentation
# of the scaler ``apache-kafka``, and Kubernetes' of HorizontalPodAutoscaler (autoscaling/v2): replicas = lag
# / threshold, rounded up, at most one per partition of the topic. The lag is polled, and a step down uses the
# highest recommendation within five minutes.


@define(kw_only=True)
class Keda:
    """One executor for each `threshold` rows of lag, from `least` to `most`; decides every `interval_s` (s).

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
        """Return the executors that the lag of all queries requires."""
        assert isinstance(view, TaskView)
        lag = float(sum(view.uncommitted.values()))
        current = len(view.executors) if view.requested is None else view.requested
        return Wish(executors=self._rule.replicas(current, lag, view.at / 1_000))
