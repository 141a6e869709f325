"""An oracle: it knows the future, and has at each moment what the next ones need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from attrs import frozen

from spark_elastic.core.policies.view import ClusterView
from spark_elastic.core.policies.wish import Wish
from spark_elastic.simulator.demand import STEP_S, Demand
from spark_elastic.simulator.rivals.rival import REACTIVE


@frozen(kw_only=True)
class Oracle:
    """Asks `ahead_s` (s) before executors are needed, and keeps them for as long after that.

    `begun` is when the simulation began (epoch ms).
    """

    settings: ClassVar[Mapping[str, str]] = REACTIVE
    interval_s: ClassVar[float] = STEP_S

    demand: Demand
    ahead_s: float
    begun: int

    def decide(self, view: ClusterView) -> Wish:
        """Return the most that is needed around now, until what is asked for has come."""
        now = view.at - self.begun
        ahead = self.ahead_s * 1_000
        return Wish(executors=self.demand.most(now - ahead, now + ahead))
