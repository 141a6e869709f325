"""Bounds of the program's query, in a policy file, and the settings under which they apply at once."""

from __future__ import annotations

from pathlib import Path

from integration.kubernetes.application import NAMESPACE, QUERY
from integration.kubernetes.cluster import Cluster
from integration.streaming.launch import AT_ONCE

AT_BOUNDS = {
    "spark.elastic.schedulerMode": "adaptive",
    "spark.elastic.slotIdleTimeout": "2s",
    "spark.elastic.adaptiveScheduler.rescalePolicy": "always",
    "spark.decommission.enabled": "true",
    **AT_ONCE,
}


def bounds(count: int) -> str:
    """Return a policy file with which the query has exactly so many partitions."""
    return f"version: 1\nqueries:\n  {QUERY}: {{lowerBound: {count}, upperBound: {count}}}\n"


def write_bounds(file: Path, count: int) -> Path:
    """Write them to a file; a concurrent reader sees either the old file or the new one."""
    new = file.with_suffix(".new")
    new.write_text(bounds(count))
    return new.replace(file)


def set_bounds(cluster: Cluster, count: int) -> None:
    """Write bounds into the ConfigMap, as `kubectl edit` does."""
    kubectl = cluster.kubectl.within(NAMESPACE)
    made = kubectl.run(
        "create",
        "configmap",
        "orders-driver",
        f"--from-literal=policy.yaml={bounds(count)}",
        "--dry-run=client",
        "--output=yaml",
    )
    kubectl.apply(made)
