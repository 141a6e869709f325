"""Tests that a query survives the ways in which Kubernetes loses pods, with exact output."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from integration.kubernetes.application import IN_FORCE_S, Application
from integration.kubernetes.bounds import at_bounds
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.figures import Figures
from integration.kubernetes.kubectl import Kubectl
from integration.kubernetes.losses import delete, evict, fill_memory, kill

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

_EXECUTORS = 2


@pytest.fixture(scope="module")
def app(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    with at_bounds(cluster, tmp_path_factory.mktemp("lost"), _EXECUTORS) as running:
        yield running


@pytest.mark.parametrize("lose", [delete, kill, evict, fill_memory])
def test_a_pod_that_is_lost_is_replaced(
    app: Application, lose: Callable[[Kubectl, str], None], figures: Figures
) -> None:
    lost = app.running()[0]
    with figures.of(f"a pod of two: {lose.__name__}", app.data):
        app.lose(lost, lose)
        if lose is fill_memory:
            app.process.wait_for_line("exited with exit code 137", IN_FORCE_S)
        app.wait_for(_EXECUTORS)


def test_the_output_is_exact(app: Application) -> None:
    app.data.check()
