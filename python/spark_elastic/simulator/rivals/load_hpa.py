"""Kubernetes' autoscaler on the load of the queries: batch time by trigger interval.

Source: Kubernetes' documentation of HorizontalPodAutoscaler (autoscaling/v2): replicas = current replicas ·
metric / target, rounded up, with a tolerance of 0.1 and a window for steps down.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from attrs import define, field
from attrs.validators import ge, gt

from spark_elastic.core.policies.policy import Wish
from spark_elastic.core.policies.view import ClusterView, QueryMetrics
from spark_elastic.simulator.rivals.hpa_rule import Hpa
from spark_elastic.simulator.rivals.rival import REACTIVE


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
