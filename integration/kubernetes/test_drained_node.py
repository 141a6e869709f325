"""Tests of two nodes, one of which is drained: its executors move to the other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.kubernetes.application import IN_FORCE_S, Application
from integration.kubernetes.bounds import at_bounds
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.figures import Figures
from integration.kubernetes.node import Node
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

_EXECUTORS = 2


@pytest.fixture(scope="module")
def app(cluster: Cluster, other: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    # The first executors are where there is most room: on the new node.
    cluster.kubectl.run("cordon", cluster.nodes[0].place.name)
    with at_bounds(cluster, tmp_path_factory.mktemp("drained"), _EXECUTORS) as running:
        cluster.kubectl.run("uncordon", cluster.nodes[0].place.name)
        yield running


def test_executors_leave_a_node_that_is_drained(
    app: Application, cluster: Cluster, other: Node, figures: Figures
) -> None:
    assert app.nodes() == [other.place.name] * _EXECUTORS
    with figures.of("node with both executors drained", app.data):
        # No controller makes executors anew, and their scratch folders go with them: both want to be allowed.
        flags = ("--force", "--delete-emptydir-data", f"--timeout={IN_FORCE_S:.0f}s")
        cluster.kubectl.run("drain", other.place.name, *flags, timeout_s=2 * IN_FORCE_S)
        there = [cluster.nodes[0].place.name] * _EXECUTORS
        eventually(lambda: app.nodes() == there, "they moved", IN_FORCE_S, every_s=0.2)
        app.wait_for(_EXECUTORS)


def test_the_output_is_exact(app: Application) -> None:
    app.data.check()
