"""A release of the Helm chart on a cluster, with a program and its data on the volume of the checkpoints."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import yaml
from attrs import define

from integration.chart.helm import CHART, RELEASE, helm
from integration.kubernetes.application import API, FILES_PER_BATCH, IN_FORCE_S, PROGRAM, QUERY, Data
from integration.kubernetes.bounds import AT_BOUNDS
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.images import ELASTIC_IMAGE
from integration.kubernetes.kubectl import Kubectl
from integration.kubernetes.volumes import shared
from integration.streaming.http import Client
from integration.streaming.launch import AT_ONCE
from integration.streaming.waiting import eventually
from spark_elastic_lab.demo.cluster import SMALL_JVM

# Others have used the other one for objects of the same names.
NAMESPACE = "chart"
CLAIM, PLACE = "checkpoints", "/checkpoints"
REPOSITORY, TAG = ELASTIC_IMAGE.rsplit(":", 1)


def helm_on(kubectl: Kubectl, *arguments: str) -> str:
    """Return what Helm prints, with the rights and in the namespace of a kubectl. Raises HelmError."""
    own = {"KUBECONFIG": str(kubectl.config), "HELM_CACHE_HOME": str(kubectl.config.with_name("helm"))}
    return helm("--namespace", kubectl.namespace, *arguments, env={**os.environ, **own})


@define
class Release:
    """The chart on a cluster, with the program and its data on the volume of the checkpoints."""

    cluster: Cluster
    data: Data
    values: dict[str, Any]

    @property
    def kubectl(self) -> Kubectl:
        return self.cluster.kubectl.within(NAMESPACE)

    def helm(self, *arguments: str) -> str:
        """Return what Helm prints. Raises HelmError."""
        return helm_on(self.kubectl, *arguments)

    def put(self, changed: Mapping[str, Any], *flags: str) -> None:
        """Install the release, or upgrade it, with values that differ in these, by their top level."""
        self.values |= changed
        file = self.data.folder / "values.yaml"
        file.write_text(yaml.safe_dump(self.values))
        self.helm("upgrade", "--install", RELEASE, str(CHART), "--values", str(file), *flags)

    def pods(self, component: str) -> list[dict[str, Any]]:
        """Return the pods of a component that run and were not told to end."""
        chosen = f"app.kubernetes.io/instance={RELEASE},app.kubernetes.io/component={component}"
        pods = self.kubectl.items("pods", chosen)
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

    def last_batch(self) -> dict[str, Any] | None:
        """Return the last micro-batch, None if none is known."""
        found: dict[str, Any] | None = (self.shown() or {}).get("lastBatch")
        return found

    def wait_for(self, partitions: int) -> None:
        """Wait until a micro-batch has run with so many partitions."""

        def look() -> bool:
            last = self.last_batch()
            return last is not None and last["partitions"] == partitions

        eventually(look, f"{partitions} partitions", IN_FORCE_S, every_s=0.5)

    def replace(self, component: str) -> None:
        """Delete the pod of driver or master, and wait until another one runs."""
        (pod,) = self.pods(component)
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        self.kubectl.run("delete", "pod", name, "--grace-period=1", "--wait=false")

        def replaced() -> bool:
            found = self.pods(component)
            return bool(found) and found[0]["metadata"]["uid"] != uid

        eventually(replaced, f"another {component}", IN_FORCE_S, every_s=0.5)


def values(data: Data, mode: str, more: Sequence[str], **chosen: Any) -> dict[str, Any]:
    """Return values for a machine with few cores; `more` are further arguments of the program."""
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
                *more,
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
def installed(
    cluster: Cluster, data: Data, mode: str, arguments: Sequence[str] = (), **chosen: Any
) -> Iterator[Release]:
    """Install the chart with values that differ in these; the release and its volume go with the block.

    `arguments` are those of the program behind the number of files.
    """
    shutil.copy(PROGRAM, data.folder)
    kubectl = cluster.kubectl.within(NAMESPACE)
    objects = shared(data.folder, data.folder.parent.name.lower(), CLAIM)
    cluster.kubectl.run("create", "namespace", NAMESPACE)
    kubectl.apply(objects)
    release = Release(cluster, data, values(data, mode, arguments, **chosen))
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
