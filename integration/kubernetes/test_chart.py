"""Tests of the Helm chart on a real cluster: it is installed, upgraded and removed; a query runs through."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from attrs import define

from integration.chart.helm import CHART, HELM, RELEASE, HelmError
from integration.go_modules import programs_of
from integration.kubernetes.application import API, FILES_PER_BATCH, IN_FORCE_S, PROGRAM, QUERY, Data
from integration.kubernetes.bounds import AT_BOUNDS
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.images import ELASTIC_IMAGE
from integration.kubernetes.volumes import shared
from integration.streaming.http import Client
from integration.streaming.launch import AT_ONCE
from integration.streaming.waiting import eventually
from spark_elastic_lab.demo.cluster import SMALL_JVM

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]
# Others have used the other one for objects of the same names.
NAMESPACE = "chart"
CLAIM, PLACE = "checkpoints", "/checkpoints"
REPOSITORY, TAG = ELASTIC_IMAGE.rsplit(":", 1)


@define
class Release:
    """The chart on a cluster, with the program and its data on the volume of the checkpoints."""

    cluster: Cluster
    data: Data
    values: dict[str, Any]

    def helm(self, *arguments: str) -> str:
        """Return what Helm prints. Raises HelmError."""
        config = self.cluster.kubectl.config
        own = {"KUBECONFIG": str(config), "HELM_CACHE_HOME": str(config.with_name("helm"))}
        command = [str(programs_of(HELM)["helm"]), "--namespace", NAMESPACE, *arguments]
        run = subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True, timeout=600)
        if run.returncode != 0:
            raise HelmError(run.stderr + run.stdout)
        return run.stdout

    def put(self, changed: Mapping[str, Any], *flags: str) -> None:
        """Install the release, or upgrade it, with values that differ in these, by their top level."""
        self.values |= changed
        file = self.data.folder / "values.yaml"
        file.write_text(yaml.safe_dump(self.values))
        self.helm("upgrade", "--install", RELEASE, str(CHART), "--values", str(file), *flags)

    def pods(self, component: str) -> list[dict[str, Any]]:
        """Return the pods of a component that run and were not told to end."""
        chosen = f"app.kubernetes.io/instance={RELEASE},app.kubernetes.io/component={component}"
        pods = self.cluster.kubectl.within(NAMESPACE).items("pods", chosen)
        live = (pod for pod in pods if "deletionTimestamp" not in pod["metadata"])
        return [pod for pod in live if pod["status"]["phase"] == "Running"]

    def shown(self) -> dict[str, Any] | None:
        """Return the query, None before the driver knows it."""
        drivers = self.pods("driver")
        if not drivers or not drivers[0]["status"].get("podIP"):
            return None
        try:
            queries = (
                Client(f"http://{drivers[0]['status']['podIP']}:4040", API).get("/queries").json["queries"]
            )
        except (OSError, ValueError, KeyError):
            return None
        found: dict[str, Any] | None = next((each for each in queries if each["name"] == QUERY), None)
        return found

    def wait_for(self, partitions: int) -> None:
        """Wait until a micro-batch has run with so many partitions."""

        def look() -> bool:
            last = (self.shown() or {}).get("lastBatch")
            return last is not None and last["partitions"] == partitions

        eventually(look, f"{partitions} partitions", IN_FORCE_S, every_s=0.5)


def values(data: Data, mode: str, **chosen: Any) -> dict[str, Any]:
    """Return values for a machine with few cores."""
    small = {"cores": 1, "cpu": "200m", "memory": "512m", "memoryOverhead": "256m"}
    conf = {
        "spark.driver.extraJavaOptions": SMALL_JVM,
        "spark.executor.extraJavaOptions": SMALL_JVM,
        "spark.elastic.adaptiveScheduler.rescalePolicy": "always",
        **AT_ONCE,
    }
    if mode == "adaptive":
        conf |= {**AT_BOUNDS, "spark.kubernetes.allocation.batch.delay": "200ms"}
    return {
        "mode": mode,
        "image": {"repository": REPOSITORY, "tag": TAG, "pullPolicy": "Never"},
        "application": {
            "file": f"local://{PLACE}/{PROGRAM.name}",
            "arguments": [
                *(f"{PLACE}/{part.name}" for part in (data.input, data.checkpoint, data.output)),
                str(FILES_PER_BATCH),
            ],
        },
        "driver": {**small, "memory": "768m", "memoryOverhead": "512m"},
        "executors": {**small, "min": 1, "max": 3, "terminationGracePeriodSeconds": 60},
        "master": {"cpu": "100m", "memory": "256m"},
        "autoscaler": {"kind": "none"},
        "checkpoints": {"claim": CLAIM, "path": PLACE},
        "networkPolicy": {"enabled": True},
        "sparkConf": conf,
        **chosen,
    }


@contextmanager
def installed(cluster: Cluster, folder: Path, mode: str, **chosen: Any) -> Iterator[Release]:
    """Install the chart; the release and its volume go with the block."""
    data = Data(folder / "data")
    shutil.copy(PROGRAM, data.folder)
    kubectl = cluster.kubectl.within(NAMESPACE)
    objects = shared(data.folder, folder.name.lower(), CLAIM)
    cluster.kubectl.run("create", "namespace", NAMESPACE)
    kubectl.apply(objects)
    release = Release(cluster, data, values(data, mode, **chosen))
    try:
        release.put({}, "--wait", "--timeout=5m")
        data.feed.start()
        yield release
    finally:
        data.feed.stop()
        try:
            release.helm("uninstall", RELEASE, "--wait", "--ignore-not-found")
            left = "all,configmaps,roles,rolebindings,serviceaccounts,networkpolicies,poddisruptionbudgets"
            ours = f"app.kubernetes.io/instance={RELEASE}"
            # Pods end after the objects that they belong to.
            eventually(lambda: kubectl.items(left, ours) == [], "nothing is left", IN_FORCE_S, every_s=0.5)
        finally:
            kubectl.run("delete", "--filename=-", "--ignore-not-found", stdin=objects)
            cluster.kubectl.run("delete", "namespace", NAMESPACE, timeout_s=IN_FORCE_S)


@pytest.fixture(scope="module", params=["reactive", "adaptive"])
def release(
    request: pytest.FixtureRequest, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Release]:
    more = {"policy": bounds(1)} if request.param == "adaptive" else {}
    folder = tmp_path_factory.mktemp(f"chart-{request.param}")
    with installed(cluster, folder, request.param, **more) as running:
        yield running


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
    (driver,) = release.pods("driver")
    release.cluster.kubectl.within(NAMESPACE).run(
        "delete", "pod", driver["metadata"]["name"], "--grace-period=1", "--wait=false"
    )

    def replaced() -> bool:
        found = release.pods("driver")
        return bool(found) and found[0]["metadata"]["uid"] != driver["metadata"]["uid"]

    eventually(replaced, "another driver", IN_FORCE_S, every_s=0.5)
    release.wait_for(1)
    release.data.check()
