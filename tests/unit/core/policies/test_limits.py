"""Tests of the limits behind every policy: bounds, executors and their quota."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from spark_elastic.core.bounds.requirements import SHUFFLE, Bounds, Requirements, Vertex
from spark_elastic.core.cluster.executors import ExecutorLimits, executor_memory
from spark_elastic.core.policies.limits import grant, narrowed
from spark_elastic.core.policies.policy import QueryWish, Wish
from spark_elastic.core.settings import CoreSettings
from tests.unit.core.policies.seen import bounds, query, view


def wanted(slots: int, query: str = "q") -> Wish:
    return Wish(queries={query: QueryWish(slots=slots, reason="autoscale_keeps")})


@pytest.mark.parametrize(
    ("slots", "granted", "reason"),
    [(3, 3, None), (9, 6, "wish_above_bounds"), (1, 2, "wish_below_bounds")],
)
def test_a_wish_is_granted_as_far_as_bounds_allow(slots: int, granted: int, reason: str | None) -> None:
    found = grant(wanted(slots), view(query(requirements=bounds(2, 6))))["q"]
    assert (found.slots, found.reason) == (granted, reason)


def test_a_wish_for_a_query_that_is_not_there_is_left_out() -> None:
    assert grant(wanted(3, "gone"), view(query())) == {}


@pytest.mark.parametrize("slots", [0, -3])
def test_there_is_no_wish_for_less_than_a_slot(slots: int) -> None:
    with pytest.raises(ValueError, match="slots"):
        QueryWish(slots=slots, reason="autoscale_keeps")


@given(lower=st.integers(1, 20), width=st.integers(0, 20), slots=st.integers(1, 60))
def test_what_is_in_force_is_within_what_was_declared(lower: int, width: int, slots: int) -> None:
    declared = bounds(lower, lower + width)
    found = narrowed(declared, slots)
    assert (found.lower, found.upper) == (lower, lower + width), "its state would be moved into other bounds"
    assert found.groups["q"].upper == max(lower, min(lower + width, slots))
    assert found.groups["q"].lower == lower
    found.validate()


def test_sources_are_read_as_declared_but_demand_nothing_more_than_the_wish() -> None:
    vertices = (
        Vertex(id=SHUFFLE, group="q", bounds=Bounds(lower=1, upper=8)),
        Vertex(id="source-0", group="q", bounds=Bounds(lower=1, upper=8)),
        Vertex(id="source-1", group="other", bounds=Bounds(lower=1, upper=5)),
    )
    found = narrowed(Requirements(vertices=vertices, bound_by="declared", priority=3), 2)
    assert found.sources == (Bounds(lower=1, upper=8), Bounds(lower=1, upper=5))
    assert {name: group.upper for name, group in found.groups.items()} == {"q": 2, "other": 5}
    assert found.priority == 3


@pytest.mark.parametrize(
    ("settings", "limits"),
    [
        ({}, ExecutorLimits()),
        ({"min_executors": 2}, ExecutorLimits(least=2)),
        ({"max_executors": 7}, ExecutorLimits(most=7, limited_by="spark.elastic.maxExecutors")),
        ({"quota_cores": 9}, ExecutorLimits(most=2, limited_by="spark.elastic.quota.cores")),
        ({"quota_memory": 10 << 30}, ExecutorLimits(most=5, limited_by="spark.elastic.quota.memory")),
        (
            {"max_executors": 7, "quota_cores": 40, "quota_memory": 6 << 30},
            ExecutorLimits(most=3, limited_by="spark.elastic.quota.memory"),
        ),
    ],
)
def test_the_tightest_limit_of_executors_counts_and_is_named(
    settings: dict[str, Any], limits: ExecutorLimits
) -> None:
    assert ExecutorLimits.of(evolve(CoreSettings(), **settings), cores=4, memory=2 << 30) == limits


def test_memory_that_is_not_known_limits_nothing() -> None:
    assert ExecutorLimits.of(CoreSettings(quota_memory=1), cores=1, memory=None) == ExecutorLimits()


def test_as_many_executors_as_fit_are_granted() -> None:
    limits = ExecutorLimits(least=2, most=5)
    assert [limits.within(wanted) for wanted in (0, 2, 4, 9)] == [2, 2, 4, 5]


@pytest.mark.parametrize(
    ("conf", "mib"),
    [
        ({}, 1_024 + 384),
        ({"spark.executor.memory": "8g"}, 8_192 + 819),
        ({"spark.executor.memory": "2048"}, 2_048 + 384),
        ({"spark.executor.memory": "2g", "spark.executor.memoryOverhead": "512"}, 2_560),
        ({"spark.executor.memory": "2g", "spark.executor.memoryOverhead": "1g"}, 3_072),
        ({"spark.executor.memory": "8g", "spark.executor.memoryOverheadFactor": "0.25"}, 8_192 + 2_048),
        ({"spark.executor.memory": "8g", "spark.kubernetes.memoryOverheadFactor": "0.4"}, 8_192 + 3_276),
        ({"spark.executor.minMemoryOverhead": "512m"}, 1_024 + 512),
        ({"spark.executor.pyspark.memory": "2g"}, 1_024 + 384 + 2_048),
        ({"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": str(1 << 30)}, 2_048 + 384),
        ({"spark.memory.offHeap.size": "1g"}, 1_024 + 384),
        ({"spark.master": "spark://here:7077", "spark.executor.memory": "2g"}, 2_048),
    ],
)
def test_the_memory_of_an_executor_is_that_of_sparks_settings(conf: dict[str, str], mib: int) -> None:
    memory = executor_memory(conf)
    assert memory is not None
    assert memory >> 20 == mib


def test_memory_that_spark_would_refuse_is_not_known() -> None:
    assert executor_memory({"spark.executor.memory": "much"}) is None
