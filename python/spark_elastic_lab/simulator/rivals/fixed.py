"""A fixed number of executors, as in most streaming applications."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from attrs import field, frozen
from attrs.validators import ge

from spark_elastic.core.policies.policy import Wish
from spark_elastic.core.policies.view import ClusterView
from spark_elastic_lab.simulator.demand import STEP_S, Demand
from spark_elastic_lab.simulator.rivals.rival import REACTIVE


@frozen(kw_only=True)
class Fixed:
    """Always uses `executors` executors."""

    settings: ClassVar[Mapping[str, str]] = REACTIVE

    executors: int = field(validator=ge(1))
    interval_s: ClassVar[float] = 3_600.0

    def decide(self, view: ClusterView) -> Wish:
        """Return the fixed number."""
        return Wish(executors=self.executors)


# ---- An oracle: it knows the future and always has the executors that the next moments need.


@frozen(kw_only=True)
class Oracle:
    """Requests executors `ahead_s` (s) before they are needed, and keeps them for `keep_s` (s) afterwards.

    `begun` is the start of the simulation (epoch ms). Without `keep_s`, every dip would cost two rescales.
    """

    settings: ClassVar[Mapping[str, str]] = REACTIVE
    interval_s: ClassVar[float] = STEP_S

    demand: Demand
    ahead_s: float
    keep_s: float = field(default=300.0, validator=ge(0))
    begun: int

    def decide(self, view: ClusterView) -> Wish:
        """Return the most executors needed around now, until a new request takes effect."""
        now = view.at - self.begun
        return Wish(executors=self.demand.most(now - self.keep_s * 1_000, now + self.ahead_s * 1_000))
