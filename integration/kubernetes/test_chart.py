"""Tests of the Helm chart on a real cluster: it is installed, upgraded and removed; a query runs through."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from integration.chart.helm import RELEASE
from integration.go_modules import is_built
from integration.kubernetes.application import IN_FORCE_S, QUERY, Data
from integration.kubernetes.chart import Release, installed
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.images import Images
from integration.kubernetes.kubeflow import OPERATOR, operator_on
from integration.streaming.http import Client
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]


OPERATED = pytest.param(
    "kubeflow",
    marks=pytest.mark.skipif(
        not is_built(OPERATOR),
        reason="kubeflow's operator has not been built yet: make test-kubernetes does it",
    ),
)


@pytest.fixture(scope="module", params=["reactive", "adaptive", OPERATED])
def release(
    request: pytest.FixtureRequest,
    cluster: Cluster,
    images: Images,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Release]:
    """Install the chart in one of its modes, or as an application of kubeflow's operator."""
    kind = request.param
    chosen: dict[str, Any] = {} if kind == "reactive" else {"policy": bounds(1)}
    data = Data(tmp_path_factory.mktemp(f"chart-{kind}") / "data")
    with ExitStack() as running:
        if kind == "kubeflow":
            running.enter_context(operator_on(cluster, images))
            chosen["operator"] = kind
        mode = "reactive" if kind == "reactive" else "adaptive"
        yield running.enter_context(installed(cluster, data, mode, **chosen))


def bounds(count: int) -> dict[str, Any]:
    return {"version": 1, "queries": {QUERY: {"lowerBound": count, "upperBound": count}}}


def scaled(release: Release, count: int) -> None:
    """Change the number of executors as a user of the mode does."""
    if release.values["mode"] == "adaptive":
        release.put({"policy": bounds(count)})
    else:
        release.put({"executors": {**release.values["executors"], "min": count}})


def component(release: Release) -> str:
    return "executor" if release.values["mode"] == "adaptive" else "worker"


def test_a_query_runs_and_helms_own_test_passes(release: Release) -> None:
    release.wait_for(1)
    assert len(release.pods(component(release))) == 1
    assert "Succeeded" in release.helm("test", RELEASE, "--timeout=3m")


@pytest.mark.parametrize("release", ["reactive"], indirect=True)
def test_a_master_that_dies_is_followed_by_one_that_knows_its_application(release: Release) -> None:
    (driver,) = release.pods("driver")
    release.replace("master")
    eventually(lambda: knows_its_application(release), "the master has recovered", IN_FORCE_S, every_s=0.5)
    before = release.last_batch()
    assert before is not None
    eventually(
        lambda: (release.last_batch() or before)["batch"] > before["batch"] + 1,
        "micro-batches go on",
        IN_FORCE_S,
        every_s=0.5,
    )
    (same,) = release.pods("driver")
    assert same["metadata"]["uid"] == driver["metadata"]["uid"]
    assert "Lost executor" not in release.kubectl.run("logs", same["metadata"]["name"])


def knows_its_application(release: Release) -> bool:
    """Return whether a master has its workers and its application from the one before it."""
    (pod,) = release.pods("master")
    try:
        found = Client(f"http://{pod['status']['podIP']}:8080", "/json").get("/").json
    except (OSError, ValueError):
        return False
    states = [each["state"] for each in found["activeapps"]]
    return bool(found["status"] == "ALIVE" and found["aliveworkers"] == 1 and states == ["RUNNING"])


@pytest.mark.parametrize("count", [2, 1])
def test_more_executors_are_used_and_fewer_without_a_restart(release: Release, count: int) -> None:
    (driver,) = release.pods("driver")
    scaled(release, count)
    release.wait_for(count)
    eventually(
        lambda: len(release.pods(component(release))) == count, "as many pods", IN_FORCE_S, every_s=0.5
    )
    (same,) = release.pods("driver")
    assert same["metadata"]["uid"] == driver["metadata"]["uid"]
    assert same["status"]["containerStatuses"][0]["restartCount"] == 0


def test_a_driver_that_dies_is_replaced_and_the_output_is_exact(release: Release) -> None:
    release.replace("driver")
    release.wait_for(1)
    release.data.check()
