"""Tests of deploy mode cluster with the manifests: rights, settings, and bounds in a ConfigMap."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from integration.kubernetes.application import (
    IN_FORCE_S,
    MANIFESTS,
    Application,
    Data,
    in_cluster_mode,
)
from integration.kubernetes.bounds import AT_BOUNDS, set_bounds
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.figures import Figures
from integration.streaming.command import spark_elastic
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    return Data(tmp_path_factory.mktemp("cluster-mode") / "data")


@pytest.fixture(scope="module")
def flags() -> list[str]:
    return ["--name", "orders", "--properties-file", str(MANIFESTS / "submit" / "application.conf")]


@pytest.fixture(scope="module")
def app(
    cluster: Cluster,
    submitter: None,
    data: Data,
    flags: list[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Application]:
    set_bounds(cluster, 1)
    with in_cluster_mode(cluster, tmp_path_factory.mktemp("first"), flags, conf(), data) as running:
        data.feed.start()
        yield running


def conf() -> dict[str, str]:
    template = MANIFESTS / "submit" / "driver-pod.yaml"
    return {**AT_BOUNDS, "spark.kubernetes.driver.podTemplateFile": str(template)}


def test_the_driver_has_the_rights_that_it_needs(app: Application) -> None:
    app.wait_for(1)
    status = spark_elastic(f"http://{app.driver}", "status")
    assert (status.returncode, "adaptive" in status.stdout) == (0, True), status.stderr


def test_bounds_in_a_config_map_are_followed(app: Application, cluster: Cluster, figures: Figures) -> None:
    for before, after in ((1, 3), (3, 1)):
        with figures.of(f"bounds {before} to {after} in a ConfigMap, cluster mode", app.data):
            set_bounds(cluster, after)
            app.wait_for(after)


def test_an_application_that_is_started_again_goes_on(
    app: Application, cluster: Cluster, data: Data, flags: list[str], tmp_path: Path, figures: Figures
) -> None:
    (driver,) = app.kubectl.items("pods", "spark-role=driver")
    with ExitStack() as running:
        with figures.of("driver's pod deleted, submitted again", data):
            app.kubectl.run("delete", "pod", driver["metadata"]["name"])
            # Its executors belong to it.
            eventually(lambda: app.pods() == [], "its executors have gone", IN_FORCE_S, every_s=0.5)
            another = in_cluster_mode(cluster, tmp_path / "second", flags, conf(), data)
            running.enter_context(another).wait_for(1)
        data.check()
