"""A fixed number of executors: what most streaming applications have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from attrs import field, frozen
from attrs.validators import ge

from spark_elastic.core.policies.policy import Wish
from spark_elastic.core.policies.view import ClusterView
from spark_elastic.simulator.rivals.rival import REACTIVE


@frozen(kw_only=True)
class Fixed:
    """Always `executors`."""

    settings: ClassVar[Mapping[str, str]] = REACTIVE

    executors: int = field(validator=ge(1))
    interval_s: ClassVar[float] = 3_600.0

    def decide(self, view: ClusterView) -> Wish:
        """Return the one number."""
        return Wish(executors=self.executors)
