"""Bounds of the program's query, in a policy file, and the settings under which they apply at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from integration.kubernetes.application import NAMESPACE, QUERY, Application, in_client_mode
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


def bounded(folder: Path, count: int) -> dict[str, str]:
    """Write bounds to a file in an application's folder, and return the settings with which it has them."""
    return {**AT_BOUNDS, "spark.elastic.policyFile": str(_write(folder, count))}


@contextmanager
def at_bounds(
    cluster: Cluster, folder: Path, count: int, conf: Mapping[str, str] | None = None, **given: Any
) -> Iterator[Application]:
    """Run an application in client mode, with input; it is there once the query has so many partitions.

    `given` is what else `in_client_mode` takes.
    """
    with in_client_mode(cluster, folder, {**bounded(folder, count), **(conf or {})}, **given) as running:
        running.data.feed.start()
        running.wait_for(count)
        yield running


def change_bounds(app: Application, count: int) -> None:
    """Change the bounds of an application that has them from a file."""
    _write(app.data.folder.parent, count)


def _write(folder: Path, count: int) -> Path:
    """Write bounds to a file; a concurrent reader sees either the old file or the new one."""
    new = folder / "policy.new"
    new.write_text(bounds(count))
    return new.replace(folder / "policy.yaml")


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
