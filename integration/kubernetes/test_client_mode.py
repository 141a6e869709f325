"""Tests of deploy mode client: executors are pods, and follow bounds that change while a query runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.kubernetes.application import IN_FORCE_S, Application
from integration.kubernetes.bounds import at_bounds, change_bounds
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.figures import Figures
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def app(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    with at_bounds(cluster, tmp_path_factory.mktemp("client"), 1) as running:
        yield running


def test_the_query_begins_with_one_executor(app: Application) -> None:
    app.wait_for(1)
    assert len(app.pods()) == 1


def test_raised_bounds_bring_pods_and_partitions(app: Application, figures: Figures) -> None:
    with figures.of("bounds 1 to 3, client mode", app.data):
        change_bounds(app, 3)
        app.wait_for(3)
    assert len(app.running()) == 3
    assert "executors_requested" in app.reasons()


def test_lowered_bounds_give_pods_back(app: Application, figures: Figures) -> None:
    with figures.of("bounds 3 to 1, client mode", app.data):
        change_bounds(app, 1)
        app.wait_for(1)
    eventually(lambda: len(app.pods()) == 1, "the other pods have gone", IN_FORCE_S, every_s=0.5)


def test_the_output_is_exact(app: Application) -> None:
    app.data.check()
