"""Tests that a driver gives the volume of an executor that is lost to the one in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from integration.kubernetes.application import MANIFESTS, Application, Data, in_cluster_mode
from integration.kubernetes.bounds import AT_BOUNDS, set_bounds
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.figures import Figures
from integration.kubernetes.kubectl import Kubectl
from integration.kubernetes.losses import delete, kill
from integration.kubernetes.volumes import spare

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

_EXECUTORS = 2
_CLASS = "spare"
_VOLUME = "spark.kubernetes.executor.volumes.persistentVolumeClaim.spark-local-dir-1"
REUSE = {
    # Spark makes no more claims than this, and waits for one of them.
    "spark.executor.instances": str(_EXECUTORS),
    # It gives no claim to another executor that is younger than this, by default ten minutes.
    "spark.kubernetes.allocation.executor.timeout": "20s",
    "spark.kubernetes.driver.ownPersistentVolumeClaim": "true",
    "spark.kubernetes.driver.reusePersistentVolumeClaim": "true",
    "spark.kubernetes.driver.waitToReusePersistentVolumeClaim": "true",
    f"{_VOLUME}.options.claimName": "OnDemand",
    f"{_VOLUME}.options.storageClass": _CLASS,
    f"{_VOLUME}.options.sizeLimit": "1Gi",
    f"{_VOLUME}.mount.path": "/scratch",
    f"{_VOLUME}.mount.readOnly": "false",
    # It finds the shuffle data that an earlier executor has left there.
    "spark.shuffle.sort.io.plugin.class": "org.apache.spark.shuffle.KubernetesLocalDiskShuffleDataIO",
}


@pytest.fixture(scope="module")
def app(cluster: Cluster, submitter: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    folder = tmp_path_factory.mktemp("claims")
    # A claim that is gone leaves its volume unusable: one more for each.
    places = [folder / f"volume-{number}" for number in range(3 * _EXECUTORS)]
    for place in places:
        place.mkdir()
        place.chmod(0o777)
    volumes = spare(places, _CLASS)
    cluster.kubectl.apply(volumes)
    set_bounds(cluster, _EXECUTORS)
    flags = ["--name", "orders", "--properties-file", str(MANIFESTS / "submit" / "application.conf")]
    template = MANIFESTS / "submit" / "driver-pod.yaml"
    conf = {**AT_BOUNDS, "spark.kubernetes.driver.podTemplateFile": str(template), **REUSE}
    data = Data(folder / "data")
    try:
        with in_cluster_mode(cluster, folder / "application", flags, conf, data) as running:
            data.feed.start()
            running.wait_for(_EXECUTORS)
            yield running
    finally:
        cluster.kubectl.run("delete", "--filename=-", "--ignore-not-found", stdin=volumes)


def claims(app: Application) -> set[str]:
    return {each["metadata"]["name"] for each in app.kubectl.items("persistentvolumeclaims")}


@pytest.mark.parametrize("lose", [delete, kill])
def test_the_next_executor_has_the_volume_of_the_lost_one(
    app: Application, lose: Callable[[Kubectl, str], None], figures: Figures
) -> None:
    before = claims(app)
    assert len(before) == _EXECUTORS
    with figures.of(f"a pod of two with a volume of its own: {lose.__name__}", app.data):
        app.lose(app.running()[0], lose)
        app.wait_for(_EXECUTORS)
    assert claims(app) == before
    (driver,) = app.kubectl.items("pods", "spark-role=driver")
    assert "Reuse PersistentVolumeClaim" in app.kubectl.run("logs", driver["metadata"]["name"])


def test_the_output_is_exact(app: Application) -> None:
    app.data.check()
