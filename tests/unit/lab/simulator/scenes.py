"""Scenarios for tests: a query whose micro-batches have costs that are easy to compute by hand."""

from __future__ import annotations

from typing import Any

from spark_elastic_lab.simulator.batches import BatchCost
from spark_elastic_lab.simulator.cluster import ClusterSpec
from spark_elastic_lab.simulator.load import Load
from spark_elastic_lab.simulator.query import QuerySpec
from spark_elastic_lab.simulator.scenario import Scenario
from spark_elastic_lab.simulator.simulation import Result, simulate
from spark_elastic_lab.simulator.source import SourceSpec

PLAIN = BatchCost(fixed_ms=0, task_ms=0, read_us=0, work_us=1_000, jitter=0)
"""A row takes one slot for a millisecond, and nothing else takes any time."""

CLUSTER = ClusterSpec(cores=1, initial=4, startup_s=20, startup_spread=0, decommission_s=0)


def query(name: str = "counts", load: str | Load = "constant:rate=1000", **fields: Any) -> QuerySpec:
    """A query with a trigger of 10 s whose source can be read by any number of tasks."""
    return QuerySpec(
        **{"name": name, "load": load, "cost": PLAIN, "source": SourceSpec(partitions=100), **fields}
    )


def scenario(*queries: QuerySpec, hours: float = 1.0, **fields: Any) -> Scenario:
    return Scenario(**{"queries": queries or (query(),), "cluster": CLUSTER, "hours": hours, **fields})


def only(what: Scenario, policy: str = "as-set") -> Result:
    """Simulate a scenario with one policy."""
    (result,) = simulate(what, [policy])
    return result
