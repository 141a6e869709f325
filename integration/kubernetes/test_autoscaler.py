"""Tests of the chart's workers behind Kubernetes' own autoscaler, with its metric from a real Prometheus.

Each row makes its task wait for a while and needs no processor, so more slots are faster on any machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from integration.chart.helm import RELEASE
from integration.go_modules import is_built
from integration.kubernetes.application import IN_FORCE_S, Data
from integration.kubernetes.chart import NAMESPACE, Release, installed
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.figures import Figures
from integration.kubernetes.images import Images
from integration.kubernetes.monitoring import ADAPTER, PLACE, Monitoring, monitored
from integration.monitoring.prometheus import PROMETHEUS
from integration.streaming.waiting import eventually

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        not all(map(is_built, (PROMETHEUS, ADAPTER))),
        reason="Prometheus and its adapter have not been built yet: make test-kubernetes does it",
    ),
]
METRIC = "spark_elastic_desired_slots"
MOST = 3
# Most of a micro-batch's time is that of its rows, even where others use the processors.
TRIGGER, ROW_MS = "8 seconds", 5
# The rows of a file; one comes each half second. They keep 0.1 and 1.6 slots busy; the metric leaves room.
LIGHT, HEAVY = 10, 160
SOONER = {
    "stabilizationWindowSeconds": 30,
    "policies": [{"type": "Percent", "value": 50, "periodSeconds": 30}],
}
# Windows, the micro-batches in the metric's median, and workers that start or finish their tasks.
SETTLED_S = 3 * IN_FORCE_S


@pytest.fixture(scope="module")
def monitoring(cluster: Cluster, images: Images) -> Iterator[Monitoring]:
    with monitored(cluster, images) as running:
        yield running


@pytest.fixture(scope="module")
def release(
    cluster: Cluster, monitoring: Monitoring, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Release]:
    """Install the chart with an autoscaler that takes less time than the default before it scales down."""
    chosen = {
        # A node of the tests has room for master, driver, Prometheus and three of these.
        "executors": {
            "cores": 1,
            "cpu": "200m",
            "memory": "512m",
            "memoryOverhead": "128m",
            "min": 1,
            "max": MOST,
        },
        "autoscaler": {"kind": "hpa", "behavior": {"scaleDown": SOONER}},
        "networkPolicy": {
            "enabled": True,
            "scrapers": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": PLACE}}}],
        },
    }
    data = Data(tmp_path_factory.mktemp("autoscaler") / "data", LIGHT)
    with installed(cluster, data, "reactive", (str(ROW_MS), TRIGGER), **chosen) as running:
        yield running


def autoscaler(release: Release) -> dict[str, Any]:
    found: dict[str, Any] = release.kubectl.get("hpa", f"{RELEASE}-worker")
    return found


def conditions(release: Release) -> dict[str, str]:
    """Return what the autoscaler says of itself: a reason for each condition."""
    found = autoscaler(release)["status"].get("conditions", ())
    return {each["type"]: f"{each['status']} {each['reason']}" for each in found}


def wait_for_workers(release: Release, count: int) -> None:
    """Wait until the autoscaler has asked for so many workers, these run, and the query uses them."""

    def look() -> bool:
        asked = release.kubectl.get("deployment", f"{RELEASE}-worker")["spec"]["replicas"]
        return bool(asked == count == len(release.pods("worker")))

    eventually(look, f"{count} workers", SETTLED_S, every_s=1)
    release.wait_for(count)


def test_the_metric_reaches_the_autoscaler_and_one_worker_is_enough(
    release: Release, monitoring: Monitoring
) -> None:
    service = f"{RELEASE}-driver"
    release.wait_for(1)
    eventually(
        lambda: monitoring.external(NAMESPACE, METRIC, service=service) == [1.0],
        "Kubernetes knows the metric",
        IN_FORCE_S,
        every_s=1,
    )
    # Another release's workers are not scaled by it.
    assert monitoring.external(NAMESPACE, METRIC, service="others-driver") == []
    assert monitoring.external("default", METRIC, service=service) == []
    eventually(
        lambda: conditions(release).get("ScalingActive") == "True ValidMetricFound",
        "the autoscaler has it, too",
        IN_FORCE_S,
        every_s=1,
    )
    assert len(release.pods("worker")) == 1


def test_alert_rules_and_targets_are_well(release: Release, monitoring: Monitoring) -> None:
    eventually(lambda: monitoring.prometheus.value("up") == 1, "the driver is scraped", IN_FORCE_S, every_s=1)
    (target,) = monitoring.prometheus.targets()
    assert target["labels"]["namespace"] == NAMESPACE
    assert target["labels"]["service"] == f"{RELEASE}-driver"
    assert {rule["health"] for rule in monitoring.prometheus.rules()} == {"ok"}


def test_more_load_brings_workers_and_the_query_uses_them(release: Release, figures: Figures) -> None:
    (driver,) = release.pods("driver")
    with figures.of(f"HPA: load that needs {MOST} workers instead of one", release.data):
        release.data.values.keys = HEAVY
        wait_for_workers(release, MOST)
    (same,) = release.pods("driver")
    assert same["metadata"]["uid"] == driver["metadata"]["uid"]


def test_workers_stay_while_there_is_no_driver(release: Release, figures: Figures) -> None:
    """Without a driver nothing says how many workers are needed: that is no reason to take them away."""
    before = autoscaler(release)["status"]["lastScaleTime"]
    with figures.of("HPA: the driver's pod is deleted", release.data):
        release.replace_driver()
        release.wait_for(MOST)
        assert autoscaler(release)["status"]["lastScaleTime"] == before
        assert len(release.pods("worker")) == MOST


def test_less_load_lets_workers_go_after_their_tasks(release: Release, figures: Figures) -> None:
    (driver,) = release.pods("driver")
    with figures.of(f"HPA: load that needs one worker instead of {MOST}", release.data):
        release.data.values.keys = LIGHT
        wait_for_workers(release, 1)
    (same,) = release.pods("driver")
    assert same["metadata"]["uid"] == driver["metadata"]["uid"]
    assert same["status"]["containerStatuses"][0]["restartCount"] == 0
    said = release.kubectl.run("logs", same["metadata"]["name"])
    assert said.count("Decommission executors: ") >= MOST - 1


def test_the_output_is_exact(release: Release) -> None:
    release.data.check()
