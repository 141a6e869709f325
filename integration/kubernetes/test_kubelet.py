"""Tests of a node whose kubelet is gone for a while, and of one that falls silent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from integration.kubernetes.application import IN_FORCE_S, Application
from integration.kubernetes.bounds import at_bounds, change_bounds
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.figures import Figures
from integration.kubernetes.node import Node
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

_EXECUTORS = 2
# Kubernetes itself gives pods five minutes on a node that it does not reach.
_LEAVES_SOON = {
    "tolerations": [
        {"key": f"node.kubernetes.io/{taint}", "effect": "NoExecute", "tolerationSeconds": 1}
        for taint in ("not-ready", "unreachable")
    ]
}


@pytest.fixture(scope="module")
def app(cluster: Cluster, other: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    with at_bounds(cluster, tmp_path_factory.mktemp("kubelet"), 1, pod=_LEAVES_SOON) as running:
        yield running


def is_ready(cluster: Cluster, node: Node) -> bool:
    conditions: list[Mapping[str, Any]] = cluster.kubectl.get("node", node.place.name)["status"]["conditions"]
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


def have_executors(app: Application, cluster: Cluster, nodes: list[Node]) -> None:
    """Have an executor on each of these nodes, one for each time that it is named."""
    change_bounds(app, 1)
    eventually(lambda: len(app.running()) == 1, "one executor", IN_FORCE_S, every_s=0.5)
    for node in cluster.nodes:
        cluster.kubectl.run("cordon", node.place.name)
    for count, node in enumerate(nodes, 1):
        cluster.kubectl.run("uncordon", node.place.name)
        if count == 1:
            app.kubectl.run("delete", "pod", app.running()[0])
        change_bounds(app, count)
        app.wait_for(count)
        cluster.kubectl.run("cordon", node.place.name)
    assert app.nodes() == [node.place.name for node in nodes]
    for node in cluster.nodes:
        cluster.kubectl.run("uncordon", node.place.name)


def test_executors_outlive_their_kubelet_and_are_replaced_when_it_is_back(
    app: Application, cluster: Cluster, other: Node, figures: Figures
) -> None:
    have_executors(app, cluster, [other] * _EXECUTORS)
    before = set(app.running())
    with figures.of("kubelet of the node with both executors gone, node not ready", app.data):
        other.kill_kubelet()
        try:
            eventually(lambda: not is_ready(cluster, other), "the node is not ready", every_s=0.5)
            eventually(lambda: app.running() == [], "its pods are told to end", every_s=0.5)
            # Their processes are not.
            app.goes_on()
            assert app.slots() == _EXECUTORS
        finally:
            other.start_kubelet()
    with figures.of("kubelet back: its pods end, others come", app.data):
        eventually(lambda: len(set(app.running()) - before) == _EXECUTORS, "others", IN_FORCE_S, every_s=0.5)
        app.wait_for(_EXECUTORS)
    eventually(lambda: is_ready(cluster, other), "the node is ready", every_s=0.5)


def test_a_node_that_falls_silent_and_is_removed(
    app: Application, cluster: Cluster, archive: Path, figures: Figures
) -> None:
    first, lost = cluster.nodes[0], cluster.add_node(images=[archive])
    have_executors(app, cluster, [first, lost])
    with figures.of("node with one of two executors silent, removed once it is not ready", app.data):
        cluster.cut(lost)
        eventually(lambda: not is_ready(cluster, lost), "the node is not ready", every_s=0.5)
        # As a cloud does whose machine is gone; until then Kubernetes keeps the pods.
        cluster.kubectl.run("delete", "node", lost.place.name)
        eventually(
            lambda: len(app.nodes()) == _EXECUTORS and lost.place.name not in app.nodes(),
            "both executors on nodes that are left",
            IN_FORCE_S,
            every_s=0.5,
        )
        app.wait_for(_EXECUTORS)


def test_the_output_is_exact(app: Application) -> None:
    app.data.check()
