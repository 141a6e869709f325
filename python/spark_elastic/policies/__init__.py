"""What the author of a custom policy needs: what a policy is, what it sees, and what it may want.

A policy is a class with a method ``decide(view: ClusterView) -> Wish``, a pure function. It is set with
``spark.elastic.policy my_package.scaling:LateNight``; its options, ``spark.elastic.policy.LateNight.*``, come
as keyword arguments of the constructor, as text. `conformance` checks one.
"""

from __future__ import annotations

from spark_elastic.core.bounds.requirements import Requirements
from spark_elastic.core.events import BatchStage, OffsetsBehind, QueryFacts
from spark_elastic.core.policies.autoscale.policy import Autoscale
from spark_elastic.core.policies.policy import BatchWish, Policy, QueryWish, Wish
from spark_elastic.core.policies.view import (
    Applied,
    BatchMetrics,
    ClusterView,
    ExecutorMetrics,
    QueryMetrics,
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
    "Sample",
    "SlotLimits",
    "Wanted",
    "Wish",
]
