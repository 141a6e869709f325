"""KEDA's scaler on the lag of a Kafka topic, through Kubernetes' autoscaler.

Source: KEDA's documentation of the scaler ``apache-kafka``, and Kubernetes' of HorizontalPodAutoscaler
(autoscaling/v2): replicas = lag / threshold, rounded up, at most as many as the topic has partitions; the lag
is polled, and a step down takes the most that was recommended within five minutes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from attrs import define, field
from attrs.validators import ge, gt

from spark_elastic.core.policies.policy import Wish
from spark_elastic.core.policies.view import ClusterView
from spark_elastic.simulator.rivals.hpa_rule import Hpa
from spark_elastic.simulator.rivals.rival import REACTIVE, TaskView


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
