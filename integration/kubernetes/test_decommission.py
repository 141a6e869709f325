"""Tests of pods that are decommissioned, with their shuffle data moved to other executors or not."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from integration.kubernetes.application import IN_FORCE_S, Application
from integration.kubernetes.bounds import at_bounds
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.figures import Figures
from integration.kubernetes.leftovers import tied
from integration.kubernetes.losses import delete
from spark_elastic_lab.demo.processes import LoggedProcess

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

_EXECUTORS = 2
STORAGE = {
    "spark.storage.decommission.enabled": "true",
    "spark.storage.decommission.shuffleBlocks.enabled": "true",
    "spark.storage.decommission.rddBlocks.enabled": "true",
}


@pytest.fixture(scope="module", params=[False, True], ids=["alone", "with_storage"])
def moves(request: pytest.FixtureRequest) -> bool:
    """Return whether an executor that is decommissioned moves its data."""
    return bool(request.param)


@pytest.fixture(scope="module")
def app(cluster: Cluster, moves: bool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    folder, conf = tmp_path_factory.mktemp("decommission"), STORAGE if moves else {}
    with at_bounds(cluster, folder, _EXECUTORS, conf) as running:
        yield running


@pytest.mark.parametrize("number", range(3))
def test_an_executor_that_is_decommissioned_is_replaced(
    app: Application, moves: bool, number: int, figures: Figures
) -> None:
    lost = app.running()[0]
    said = LoggedProcess(
        "log of an executor",
        tied(app.kubectl.command("logs", "--follow", lost)),
        env={**os.environ, **app.kubectl.environment},
        log=app.data.folder / f"executor-{number}.log",
        cwd=app.data.folder,
    )
    try:
        with figures.of(f"pod decommissioned, {'with' if moves else 'without'} its storage", app.data):
            app.lose(lost, delete)
            app.wait_for(_EXECUTORS)
        # It ends with the container.
        assert said.wait(IN_FORCE_S) is not None
    finally:
        said.kill()
    told = said.log.read_text(errors="replace")
    assert "Decommission executor" in told
    assert ("Start refreshing migratable shuffle blocks" in told) == moves


def test_the_output_is_exact(app: Application) -> None:
    app.data.check()
