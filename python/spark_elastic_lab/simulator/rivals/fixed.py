"""A fixed number of executors: what most streaming applications have."""

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
    """Always `executors`."""

    settings: ClassVar[Mapping[str, str]] = REACTIVE

    executors: int = field(validator=ge(1))
    interval_s: ClassVar[float] = 3_600.0

    def decide(self, view: ClusterView) -> Wish:
        """Return the one number."""
        return Wish(executors=self.executors)


# An oracle: it knows the future, and has at each moment what the next ones need.


@frozen(kw_only=True)
class Oracle:
    """Asks `ahead_s` (s) before executors are needed, and keeps them for `keep_s` (s) after that.

    `begun` is when the simulation began (epoch ms). Without the second every dip would cost two rescales.
    """

    settings: ClassVar[Mapping[str, str]] = REACTIVE
    interval_s: ClassVar[float] = STEP_S

    demand: Demand
    ahead_s: float
    keep_s: float = field(default=300.0, validator=ge(0))
    begun: int

    def decide(self, view: ClusterView) -> Wish:
        """Return the most that is needed around now, until what is asked for has come."""
        now = view.at - self.begun
        return Wish(executors=self.demand.most(now - self.keep_s * 1_000, now + self.ahead_s * 1_000))
