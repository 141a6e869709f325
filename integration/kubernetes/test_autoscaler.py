"""Tests of the chart's workers behind the autoscalers that it knows, each a real one.

HPA has its metric from Prometheus through prometheus-adapter, KEDA from Prometheus or from the driver itself.
Each row makes its task wait for a while and needs no processor, so more slots are faster on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from attrs import frozen

from integration.chart.helm import RELEASE
from integration.go_modules import is_built
from integration.kubernetes.application import IN_FORCE_S, Data
from integration.kubernetes.chart import NAMESPACE, Release, installed
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.figures import Figures
from integration.kubernetes.images import Images
from integration.kubernetes.keda import KEDA, keda_on
from integration.kubernetes.monitoring import ADAPTER, PLACE, adapted, external, prometheus_on
from integration.monitoring.prometheus import PROMETHEUS, PrometheusClient
from integration.streaming.waiting import eventually

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        not all(map(is_built, (PROMETHEUS, ADAPTER, KEDA))),
        reason="Prometheus, its adapter and KEDA have not been built yet: make test-kubernetes does it",
    ),
]
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


Around = Callable[[Cluster, Images], AbstractContextManager[PrometheusClient | None]]


@frozen
class Autoscaler:
    """An autoscaler with what runs around it, the chart's values, and the names of its objects.

    `labels` are those of its metric for the release, `foreign` those for another one.
    """

    name: str
    around: Around
    values: Mapping[str, Any]
    hpa: str
    metric: str
    labels: Mapping[str, str]
    foreign: Mapping[str, str]


@contextmanager
def keda_with_prometheus(cluster: Cluster, images: Images) -> Iterator[PrometheusClient]:
    with prometheus_on(cluster, images) as prometheus, keda_on(cluster, images):
        yield prometheus


def keda(name: str, around: Around, metric: str, **values: str) -> Autoscaler:
    """Return KEDA with a trigger, which decides about the name of its metric."""
    label = "scaledobject.keda.sh/name"
    return Autoscaler(
        name,
        around,
        {"kind": "keda", **values},
        f"keda-hpa-{RELEASE}-worker",
        metric,
        {label: f"{RELEASE}-worker"},
        {label: "others-worker"},
    )


HPA = Autoscaler(
    "HPA",
    adapted,
    {"kind": "hpa"},
    f"{RELEASE}-worker",
    "spark_elastic_desired_slots",
    {"service": f"{RELEASE}-driver"},
    {"service": "others-driver"},
)
KEDA_AND_PROMETHEUS = keda(
    "KEDA with Prometheus",
    keda_with_prometheus,
    "s0-prometheus",
    prometheus=f"http://prometheus.{PLACE}.svc:9090",
)
KEDA_ALONE = keda("KEDA", keda_on, "s0-metric-api-spark_elastic_desired_slots")


def scaled_by(*autoscalers: Autoscaler) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("scaled", autoscalers, ids=lambda each: each.name, indirect=True)


with_each = scaled_by(HPA, KEDA_AND_PROMETHEUS, KEDA_ALONE)


@frozen
class Scaled:
    """The chart's workers, with what scales them, and Prometheus if it is part of that."""

    by: Autoscaler
    release: Release
    prometheus: PrometheusClient | None

    @property
    def autoscaler(self) -> dict[str, Any]:
        found: dict[str, Any] = self.release.kubectl.get("hpa", self.by.hpa)
        return found

    @property
    def conditions(self) -> dict[str, str]:
        """What the autoscaler says of itself: a reason for each condition."""
        found = self.autoscaler["status"].get("conditions", ())
        return {each["type"]: f"{each['status']} {each['reason']}" for each in found}

    def external(self, namespace: str, labels: Mapping[str, str]) -> list[float]:
        return external(self.release.kubectl, namespace, self.by.metric, **labels)

    def wait_for_workers(self, count: int) -> None:
        """Wait until the autoscaler has asked for so many workers, these run, and the query uses them."""

        def look() -> bool:
            asked = self.release.kubectl.get("deployment", f"{RELEASE}-worker")["spec"]["replicas"]
            return bool(asked == count == len(self.release.pods("worker")))

        eventually(look, f"{count} workers", SETTLED_S, every_s=1)
        self.release.wait_for(count)


@pytest.fixture(scope="module")
def scaled(
    request: pytest.FixtureRequest,
    cluster: Cluster,
    images: Images,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Scaled]:
    """Install the chart with an autoscaler that takes less time than the default before it scales down."""
    by: Autoscaler = request.param
    chosen = {
        # A node of the tests has room for master, driver, autoscaler and three of these.
        "executors": {
            "cores": 1,
            "cpu": "200m",
            "memory": "512m",
            "memoryOverhead": "128m",
            "min": 1,
            "max": MOST,
        },
        "autoscaler": {**by.values, "behavior": {"scaleDown": SOONER}},
        "networkPolicy": {
            "enabled": True,
            "scrapers": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": PLACE}}}],
        },
    }
    data = Data(tmp_path_factory.mktemp("autoscaler") / "data", LIGHT)
    arguments = (str(ROW_MS), TRIGGER)
    with (
        by.around(cluster, images) as prometheus,
        installed(cluster, data, "reactive", arguments, **chosen) as release,
    ):
        yield Scaled(by, release, prometheus)


@with_each
def test_the_metric_reaches_the_autoscaler_and_one_worker_is_enough(scaled: Scaled) -> None:
    scaled.release.wait_for(1)
    eventually(
        lambda: scaled.external(NAMESPACE, scaled.by.labels) == [1.0],
        "Kubernetes knows the metric",
        IN_FORCE_S,
        every_s=1,
    )
    # Another release's workers are not scaled by it.
    assert scaled.external(NAMESPACE, scaled.by.foreign) == []
    assert scaled.external("default", scaled.by.labels) == []
    eventually(
        lambda: scaled.conditions.get("ScalingActive") == "True ValidMetricFound",
        "the autoscaler has it, too",
        IN_FORCE_S,
        every_s=1,
    )
    assert len(scaled.release.pods("worker")) == 1


@scaled_by(HPA, KEDA_AND_PROMETHEUS)
def test_alert_rules_and_targets_are_well(scaled: Scaled) -> None:
    prometheus = scaled.prometheus
    assert prometheus is not None
    eventually(lambda: prometheus.value("up") == 1, "the driver is scraped", IN_FORCE_S, every_s=1)
    (target,) = prometheus.targets()
    assert target["labels"]["namespace"] == NAMESPACE
    assert target["labels"]["service"] == f"{RELEASE}-driver"
    assert {rule["health"] for rule in prometheus.rules()} == {"ok"}


@with_each
def test_more_load_brings_workers_and_the_query_uses_them(scaled: Scaled, figures: Figures) -> None:
    (driver,) = scaled.release.pods("driver")
    data = scaled.release.data
    with figures.of(f"{scaled.by.name}: load that needs {MOST} workers instead of one", data):
        data.values.keys = HEAVY
        scaled.wait_for_workers(MOST)
    (same,) = scaled.release.pods("driver")
    assert same["metadata"]["uid"] == driver["metadata"]["uid"]


@with_each
def test_workers_stay_while_there_is_no_driver(scaled: Scaled, figures: Figures) -> None:
    """Without a driver nothing says how many workers are needed: that is no reason to take them away."""
    release = scaled.release
    before = scaled.autoscaler["status"]["lastScaleTime"]
    with figures.of(f"{scaled.by.name}: the driver's pod is deleted", release.data):
        release.replace("driver")
        release.wait_for(MOST)
        assert scaled.autoscaler["status"]["lastScaleTime"] == before
        assert len(release.pods("worker")) == MOST


@with_each
def test_less_load_lets_workers_go_after_their_tasks(scaled: Scaled, figures: Figures) -> None:
    release = scaled.release
    (driver,) = release.pods("driver")
    with figures.of(f"{scaled.by.name}: load that needs one worker instead of {MOST}", release.data):
        release.data.values.keys = LIGHT
        scaled.wait_for_workers(1)
    (same,) = release.pods("driver")
    assert same["metadata"]["uid"] == driver["metadata"]["uid"]
    assert same["status"]["containerStatuses"][0]["restartCount"] == 0
    said = release.kubectl.run("logs", same["metadata"]["name"])
    assert said.count("Decommission executors: ") >= MOST - 1


@with_each
def test_the_output_is_exact(scaled: Scaled) -> None:
    scaled.release.data.check()
