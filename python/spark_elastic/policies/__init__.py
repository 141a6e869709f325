"""What the author of a custom policy needs: the interface of a policy, its view, and its possible wishes.

A policy is a class with a method ``decide(view: ClusterView) -> Wish``, a pure function. Set it with
``spark.elastic.policy my_package.scaling:LateNight``. Its constructor gets the options
``spark.elastic.policy.LateNight.*`` as keyword arguments, as text. `conformance` checks a policy.
"""

from __future__ import annotations

from spark_elastic.core.bounds.requirements import Requirements
from spark_elastic.core.events import BatchStage, OffsetsBehind, QueryFacts
from spark_elastic.core.policies.autoscale.wishes import Autoscale
from spark_elastic.core.policies.policy import BatchWish, Policy, QueryWish, Wish
from spark_elastic.core.policies.view import (
    Applied,
    BatchMetrics,
    ClusterView,
    ExecutorMetrics,
    QueryMetrics,
    Running,
    Sample,
    SlotLimits,
    Wanted,
)
from spark_elastic.core.settings import CoreSettings

__all__ = [
    "Applied",
    "Autoscale",
    "BatchMetrics",
    "BatchStage",
    "BatchWish",
    "ClusterView",
    "CoreSettings",
    "ExecutorMetrics",
    "OffsetsBehind",
    "Policy",
    "QueryFacts",
    "QueryMetrics",
    "QueryWish",
    "Requirements",
    "Running",
    "Sample",
    "SlotLimits",
    "Wanted",
    "Wish",
]
