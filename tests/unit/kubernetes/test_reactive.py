"""Tests of the manifests for reactive mode: workers, what scales them, master and driver fit each other."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from spark_elastic.core.keys.rescaling import MODE
from spark_elastic.http.metrics import metrics
from spark_elastic.settings import load
from tests.unit.http.world import world
from tests.unit.kubernetes.rendered import FOLDER, REACTIVE, Manifest, manifest

OWN_CLUSTER = tuple(name for name in REACTIVE if name != "reactive-apache")
EACH = pytest.mark.parametrize("name", REACTIVE)


def scaler(found: Manifest) -> dict[str, Any]:
    """Return the metric's source of what scales the workers."""
    for each in found.of("ScaledObject"):
        (trigger,) = each["spec"]["triggers"]
        assert trigger["metricType"] == "AverageValue"
        return dict(trigger["metadata"])
    (metric,) = found.one("HorizontalPodAutoscaler")["spec"]["metrics"]
    return dict(metric["external"])


def target(found: Manifest) -> tuple[str, str]:
    """Return the metric that workers are scaled by, and the amount of it per worker."""
    source = scaler(found)
    if "metric" in source:
        assert source["target"]["type"] == "AverageValue"
        return source["metric"]["name"], source["target"]["averageValue"]
    if "valueLocation" in source:
        return source["valueLocation"], source["targetValue"]
    (name,) = re.findall(r"^sum\((\w+)\{", source["query"])
    return name, source["threshold"]


@EACH
def test_workers_are_scaled_by_a_metric_of_ours_and_the_slots_of_a_worker(name: str) -> None:
    with world() as running:
        assert running.publisher.view is not None
        exported = {f"spark_elastic_{metric.name}" for metric in metrics(running.publisher.view)}
    found = manifest(name)
    metric, amount = target(found)
    assert metric in exported
    assert amount == found.pod("worker").environment["SPARK_WORKER_CORES"]
    assert found.conf()["spark.executor.cores"] == amount


@EACH
def test_what_scales_names_the_workers_and_nothing_else_sets_their_number(name: str) -> None:
    found = manifest(name)
    (scaling,) = found.of("ScaledObject") + found.of("HorizontalPodAutoscaler")
    scaled = scaling["spec"]["scaleTargetRef"]
    if name == "reactive-apache":
        cluster = found.one("SparkCluster")
        assert (scaled["kind"], scaled["name"]) == ("StatefulSet", f"{cluster['metadata']['name']}-worker")
        # The operator makes an autoscaler if the second is larger, and a budget if the first is not 0.
        counts = cluster["spec"]["clusterTolerations"]["instanceConfig"]
        assert (counts["minWorkers"], counts["maxWorkers"]) == (0, 0)
        assert counts["initWorkers"] == scaling["spec"]["minReplicas"]
        return
    workers = found.one("Deployment", "worker")
    assert (scaled["kind"], scaled["name"]) == ("Deployment", workers["metadata"]["name"])
    assert "replicas" not in workers["spec"]


@EACH
def test_only_the_metrics_of_this_cluster_count(name: str) -> None:
    found = manifest(name)
    source, service = scaler(found), found.one("Service", "driver")["metadata"]["name"]
    if "metric" in source:
        assert source["metric"]["selector"] == {"matchLabels": {"service": service}}
    elif "query" in source:
        assert source["query"].count(f'{{namespace="spark", service="{service}"}}') == 3
    else:
        assert source["url"] == f"http://{service}.spark.svc:4040/elastic/metrics/"


def test_the_adapter_brings_the_metric_that_the_autoscaler_asks_for() -> None:
    values = yaml.safe_load((FOLDER / "prometheus-adapter.yaml").read_text(encoding="utf-8"))
    (rule,) = values["rules"]["external"]
    assert rule["seriesQuery"] == f'{{__name__="{target(manifest("reactive-hpa"))[0]}"}}'


def test_what_is_not_known_is_no_zero_for_keda() -> None:
    assert scaler(manifest("reactive-keda"))["ignoreNullValues"] == "false"


def test_a_drain_takes_workers_away_one_by_one() -> None:
    for name in REACTIVE:
        found = manifest(name)
        budget = found.one("PodDisruptionBudget")["spec"]
        kept = [pod.component for pod in found.pods() if pod.matches(budget["selector"]["matchLabels"])]
        assert (kept, budget["maxUnavailable"]) == (["worker"], 1)


def hook(name: str) -> str:
    shell, option, lines = manifest(name).pod("worker").container["lifecycle"]["preStop"]["exec"]["command"]
    assert (shell, option) == ("/bin/sh", "-c")
    assert isinstance(lines, str)
    return lines


@pytest.mark.parametrize("name", OWN_CLUSTER)
def test_a_worker_heeds_the_signal_of_its_hook_and_has_time_for_it(name: str) -> None:
    worker = manifest(name).pod("worker")
    assert "-Dspark.decommission.enabled=true" in worker.environment["SPARK_DAEMON_JAVA_OPTS"]
    # The default of spark.worker.decommission.signal, sent to process 1, which must be the worker itself.
    assert hook(name).startswith("kill -s PWR 1\n")
    assert worker.container["command"][0].endswith("/spark-class")
    assert worker.spec["terminationGracePeriodSeconds"] >= 300


def test_the_hook_waits_until_the_executors_have_gone(tmp_path: Path) -> None:
    signals, executor = tmp_path / "signals", tmp_path / "proc" / "17" / "cmdline"
    for number, command in ((1, "java\0Worker"), (17, "java\0org…CoarseGrainedExecutorBackend\0--cores")):
        cmdline = tmp_path / "proc" / str(number) / "cmdline"
        cmdline.parent.mkdir(parents=True)
        cmdline.write_text(command)
    lines = hook("reactive-hpa").replace("/proc/", f"{tmp_path}/proc/")
    process = subprocess.Popen(["/bin/sh", "-c", f'kill() {{ echo "$@" > {signals}; }}\n{lines}'])
    try:
        deadline = time.monotonic() + 20
        while not signals.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)
        executor.write_text("")
        assert process.wait(timeout=20) == 0
    finally:
        process.kill()
        process.wait()
    assert signals.read_text() == "-s PWR 1\n"


@EACH
def test_workers_and_driver_find_the_master_by_the_name_of_its_service(name: str) -> None:
    found = manifest(name)
    url = found.conf()["spark.master"]
    if name == "reactive-apache":
        assert url == f"spark://{found.one('SparkCluster')['metadata']['name']}-master-svc:7077"
        return
    service = found.one("Service", "master")
    assert url == f"spark://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
    assert found.pod("worker").container["args"][-1] == url


@EACH
def test_the_name_of_a_service_does_not_break_master_and_workers(name: str) -> None:
    # With service links and a service `spark-master`, SPARK_MASTER_PORT is a URL, which the master reads.
    for component in ("master", "worker"):
        assert manifest(name).pod(component).spec["enableServiceLinks"] is False


@EACH
def test_a_worker_looks_for_a_restarted_master_under_its_name(name: str) -> None:
    options = manifest(name).pod("worker").environment["SPARK_DAEMON_JAVA_OPTS"].split()
    assert "-Dspark.worker.preferConfiguredMasterAddress=true" in options


@EACH
def test_queries_use_what_workers_there_are(name: str) -> None:
    assert load(manifest(name).conf())[MODE] == "reactive"


@EACH
def test_there_is_never_a_second_master_or_driver(name: str) -> None:
    for each in manifest(name).of("Deployment"):
        if not each["metadata"]["name"].endswith("-worker"):
            assert (each["spec"]["replicas"], each["spec"]["strategy"]) == (1, {"type": "Recreate"})
