"""Tests of pods that do not come: no room, refused by the API server, or without their image."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.kubernetes.application import IN_FORCE_S, Application, in_client_mode, number_of
from integration.kubernetes.bounds import at_bounds, bounded, change_bounds
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.figures import Figures
from integration.kubernetes.images import ELASTIC_IMAGE
from integration.kubernetes.objects import LIMITS, QUOTA, Object, existing, filler
from integration.streaming.command import spark_elastic
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

_WANTED = 3


@pytest.fixture(scope="module")
def app(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    with at_bounds(cluster, tmp_path_factory.mktemp("room"), 1) as running:
        yield running


def doctor(app: Application) -> str:
    """Return what `doctor --live` says."""
    return spark_elastic(f"http://{app.driver}", "doctor", "--live", **app.kubectl.environment).stdout


def newest(app: Application) -> int:
    """Return the largest id that an executor's pod has had so far, of those that are there."""
    return max(number_of(pod["metadata"]) for pod in app.pods())


def test_pods_without_room_are_asked_for_once(app: Application, figures: Figures) -> None:
    with existing(app.kubectl, filler("1700m")):
        app.kubectl.run("wait", "--for=condition=Ready", "pod/filler", "--timeout=60s")
        change_bounds(app, _WANTED)
        eventually(lambda: len(app.pods()) == _WANTED, "pods are asked for", IN_FORCE_S, every_s=0.2)
        asked = newest(app)
        app.goes_on()
        assert (len(app.pods()), newest(app)) == (_WANTED, asked)
        assert app.slots() == 1
        said = doctor(app)
        assert f"{_WANTED - 1} pending: 0/" in said
        assert "Insufficient cpu" in said
    with figures.of("room for pending pods", app.data):
        app.wait_for(_WANTED)
    assert newest(app) == asked


@pytest.mark.parametrize(
    ("rule", "said"),
    [(QUOTA, "exceeded quota: few"), (LIMITS, "maximum memory usage per Container is 100Mi")],
    ids=["quota", "limits"],
)
def test_pods_that_the_api_server_refuses(
    app: Application, rule: Object, said: str, figures: Figures
) -> None:
    change_bounds(app, 1)
    app.wait_for(1)
    eventually(lambda: len(app.pods()) == 1, "the other pods have gone", IN_FORCE_S, every_s=0.2)
    with existing(app.kubectl, rule):
        change_bounds(app, _WANTED)
        app.process.wait_for_line(said, IN_FORCE_S)
        app.goes_on()
        assert (len(app.pods()), app.slots()) == (1, 1)
        assert ("few has no room for another executor: pods 1 of 1" in doctor(app)) == (rule is QUOTA)
    with figures.of(f"{rule['kind']} removed", app.data):
        app.wait_for(_WANTED)


def test_the_output_is_exact(app: Application) -> None:
    app.data.check()


def test_an_image_that_arrives_late(
    app: Application, cluster: Cluster, tmp_path: Path, figures: Figures
) -> None:
    late = "localhost/late:1"
    conf = {**bounded(tmp_path, 1), "spark.kubernetes.executor.container.image": late}
    app.process.stop()
    with in_client_mode(cluster, tmp_path, conf) as other:
        other.data.feed.start()
        eventually(
            lambda: "ImagePullBackOff" in waiting(other), "the image is missing", IN_FORCE_S, every_s=0.5
        )
        assert other.slots() == 0
        eventually(lambda: "1 pending: ImagePullBackOff: " in doctor(other), "doctor says why", every_s=1)
        with figures.of("image that could not be pulled arrives", other.data):
            cluster.nodes[0].name_image(ELASTIC_IMAGE, late)
            other.wait_for(1)
        other.data.check()


def waiting(app: Application) -> list[str]:
    """Return why containers of executors do not run."""
    states = [
        status["state"].get("waiting", {})
        for pod in app.pods()
        for status in pod["status"].get("containerStatuses", [])
    ]
    return [state["reason"] for state in states if state]
