"""Tests of a pod whose address answers nothing before its end is known."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.kubernetes.application import Application
from integration.kubernetes.bounds import at_bounds
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.figures import Figures
from integration.kubernetes.losses import kill

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

_EXECUTORS = 2
_SILENT_S = 60.0


@pytest.fixture(scope="module")
def app(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    with at_bounds(cluster, tmp_path_factory.mktemp("silent"), _EXECUTORS) as running:
        yield running


def test_a_pod_that_falls_silent(app: Application, cluster: Cluster, figures: Figures) -> None:
    lost = next(pod for pod in app.pods() if pod["metadata"]["name"] == app.running()[0])
    (node,) = [node for node in cluster.nodes if node.place.name == lost["spec"]["nodeName"]]
    with figures.of("a pod of two silent, then deleted", app.data):
        node.cut_pod(lost["status"]["podIP"])
        app.lose(lost["metadata"]["name"], kill)
        app.wait_for(_EXECUTORS)
    assert float(figures.rows[-1]["longest gap of output"]) < _SILENT_S


def test_the_output_is_exact(app: Application) -> None:
    app.data.check()
