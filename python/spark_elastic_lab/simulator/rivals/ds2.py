"""DS2: instances = input rate / the rate of one instance while it works.

Source: Kalavri and others, *Three steps is all you need*, OSDI 2018, and its controller
(strymon-system/ds2). An instance is a slot; its useful time is the share of time in which its query runs a
micro-batch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

from attrs import define, field
from attrs.validators import ge, gt

from spark_elastic.core.policies.policy import QueryWish, Wish
from spark_elastic.core.policies.view import ClusterView, QueryMetrics, Sample
from spark_elastic_lab.simulator.rivals.rival import ADAPTIVE, window


def instances(rate: float, true_rate: float, current: int, scaling_factor: float = 0.0) -> int:
    """Return the instances that a rate needs, if `current` instances together can process `true_rate`."""
    return max(1, math.ceil(rate / (true_rate / current) * (1 + scaling_factor) - 1e-9))


@define(kw_only=True)
class Ds2:
    """Decides every `interval_s` (s), and skips `warm_up` decisions after a change.

    `ratio`: if a query would not grow, but its input rate exceeds the observed rate by more than this factor,
    its slots are multiplied by the quotient of the two rates.
    """

    settings: ClassVar[Mapping[str, str]] = {
        **ADAPTIVE,
        "spark.elastic.adaptiveScheduler.rescalePolicy": "always",
    }

    interval_s: float = field(default=60.0, validator=gt(0))
    warm_up: int = field(default=1, validator=ge(0))
    scaling_factor: float = field(default=0.0, validator=ge(0))
    ratio: float = field(default=math.inf, validator=gt(0))
    _looks: dict[str, int] = field(factory=dict, init=False)

    def decide(self, view: ClusterView) -> Wish:
        """Return the slots for each query with enough data."""
        wishes = {}
        for name, query in view.queries.items():
            self._looks[name] = looks = self._looks.get(name, 0) + 1
            samples = window(query, view.at - self.interval_s * 1_000)
            if looks <= self.warm_up or query.slots < 1 or not samples:
                continue
            wanted = self._wanted(query, samples, view)
            if wanted != query.slots:
                self._looks[name] = 0
            wishes[name] = QueryWish(slots=wanted, reason="ds2")
        return Wish(queries=wishes)

    def _wanted(self, query: QueryMetrics, samples: Sequence[Sample], view: ClusterView) -> int:
        rows = sum(sample.input_rows for sample in samples)
        useful_s = sum(sample.duration_ms for sample in samples) / 1_000
        gaps_s = sum(sample.gap_ms or query.facts.trigger_ms for sample in samples) / 1_000
        if rows == 0 or useful_s == 0 or gaps_s == 0:
            return 1 if rows == 0 else query.slots
        grown = (samples[-1].behind or 0) - (samples[0].behind or 0)
        observed = rows / gaps_s
        rate = observed + max(0.0, grown / gaps_s)
        wanted = instances(rate, rows / useful_s, query.slots, self.scaling_factor)
        if wanted <= query.slots and rate / observed > self.ratio:
            return math.ceil(rate / observed * query.slots)
        return wanted
