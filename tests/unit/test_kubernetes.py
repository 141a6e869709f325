"""Tests of the recipes for Kubernetes: their content, and that they fit each other and our metrics.

Kubernetes' own objects are checked against its published schemas, which a package provides; KEDA publishes no
small ones, so the fields in use are listed here.
"""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from spark_elastic.core.keys.rescaling import MODE
from spark_elastic.http.metrics import metrics
from spark_elastic.settings import load
from tests.unit.http.world import world

FOLDER = Path(__file__).parents[2] / "conf" / "kubernetes"
# The oldest version that the recipes are for, and the newest known one.
VERSIONS = ("1.30", kubernetes_validate.latest_version())
SCALERS = ("hpa.yaml", "keda.yaml", "keda-without-prometheus.yaml")
TEXT = {"type": "string", "minLength": 1}
COUNT = {"type": "integer", "minimum": 0}


def only(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """Describe an object with these fields and no others."""
    fields = {**required, **(optional or {})}
    return {
        "type": "object",
        "properties": fields,
        "required": list(required),
        "additionalProperties": False,
    }


TRIGGERS = {
    "prometheus": only({"serverAddress": TEXT, "query": TEXT, "threshold": TEXT}, {"ignoreNullValues": TEXT}),
    "metrics-api": only({"url": TEXT, "valueLocation": TEXT, "targetValue": TEXT}, {"format": TEXT}),
}
SCALED_OBJECT = only(
    {
        "apiVersion": {"const": "keda.sh/v1alpha1"},
        "kind": {"const": "ScaledObject"},
        "metadata": only({"name": TEXT}),
        "spec": only(
            {
                "scaleTargetRef": only({"name": TEXT}),
                "triggers": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "oneOf": [
                            only(
                                {"type": {"const": kind}, "metadata": metadata},
                                {"metricType": {"enum": ["AverageValue", "Value"]}},
                            )
                            for kind, metadata in TRIGGERS.items()
                        ]
                    },
                },
            },
            {
                "pollingInterval": COUNT,
                "minReplicaCount": COUNT,
                "maxReplicaCount": COUNT,
                "advanced": only(
                    {"horizontalPodAutoscalerConfig": only({"behavior": {"type": "object"}})},
                ),
            },
        ),
    }
)


def read(name: str) -> dict[str, Any]:
    found = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def check(found: dict[str, Any], version: str) -> None:
    """Raise for an object that is invalid for Kubernetes or KEDA."""
    if found["kind"] != "ScaledObject":
        kubernetes_validate.validate(found, version, strict=True)
        return
    jsonschema.validate(found, SCALED_OBJECT)
    # KEDA passes the behavior to a Kubernetes autoscaler unchanged.
    behavior = found["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    plain = read("hpa.yaml")
    plain["spec"]["behavior"] = behavior
    check(plain, version)


OBJECTS = sorted(file.name for file in FOLDER.glob("*.yaml") if file.name != "prometheus-adapter.yaml")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_has_the_published_form(name: str, version: str) -> None:
    check(read(name), version)


@pytest.mark.parametrize("name", OBJECTS)
def test_a_field_that_does_not_exist_is_found(name: str) -> None:
    broken = read(name)
    broken["spec"]["replica"] = 3
    with pytest.raises(jsonschema.ValidationError):
        check(broken, VERSIONS[0])


def container(name: str) -> dict[str, Any]:
    (found,) = read(name)["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def environment() -> dict[str, str]:
    return {variable["name"]: variable["value"] for variable in container("workers.yaml")["env"]}


def targets() -> dict[str, tuple[str, str]]:
    """Return each autoscaler's metric, and the amount of it per worker."""
    (external,) = read("hpa.yaml")["spec"]["metrics"]
    (prometheus,) = read("keda.yaml")["spec"]["triggers"]
    (asking,) = read("keda-without-prometheus.yaml")["spec"]["triggers"]
    query = re.match(r"sum\((\w+)\{", prometheus["metadata"]["query"])
    assert query is not None
    return {
        "hpa.yaml": (
            external["external"]["metric"]["name"],
            external["external"]["target"]["averageValue"],
        ),
        "keda.yaml": (query[1], prometheus["metadata"]["threshold"]),
        "keda-without-prometheus.yaml": (
            asking["metadata"]["valueLocation"],
            asking["metadata"]["targetValue"],
        ),
    }


@pytest.mark.parametrize("name", SCALERS)
def test_an_autoscaler_goes_by_a_metric_of_ours_and_the_slots_of_a_worker(name: str) -> None:
    with world() as running:
        assert running.publisher.view is not None
        exported = {f"spark_elastic_{metric.name}" for metric in metrics(running.publisher.view)}
    metric, target = targets()[name]
    assert metric in exported
    assert target == environment()["SPARK_WORKER_CORES"]


@pytest.mark.parametrize("name", SCALERS)
def test_an_autoscaler_scales_the_workers(name: str) -> None:
    assert read(name)["spec"]["scaleTargetRef"]["name"] == read("workers.yaml")["metadata"]["name"]


def test_the_adapter_brings_the_metric_that_the_autoscaler_asks_for() -> None:
    (rule,) = read("prometheus-adapter.yaml")["rules"]["external"]
    assert rule["seriesQuery"] == f'{{__name__="{targets()["hpa.yaml"][0]}"}}'


def test_what_is_not_known_is_no_zero_for_keda() -> None:
    (trigger,) = read("keda.yaml")["spec"]["triggers"]
    assert trigger["metadata"]["ignoreNullValues"] == "false"


def test_keda_asks_the_service_of_the_driver() -> None:
    (trigger,) = read("keda-without-prometheus.yaml")["spec"]["triggers"]
    service = read("driver-ui.yaml")
    port = service["spec"]["ports"][0]["port"]
    asked = trigger["metadata"]["url"]
    assert re.fullmatch(rf"http://{service['metadata']['name']}\.\w+\.svc:{port}/elastic/metrics/", asked)


def hook() -> str:
    shell, option, lines = container("workers.yaml")["lifecycle"]["preStop"]["exec"]["command"]
    assert (shell, option) == ("/bin/sh", "-c")
    assert isinstance(lines, str)
    return lines


def test_a_worker_heeds_the_signal_of_its_hook() -> None:
    assert "-Dspark.decommission.enabled=true" in environment()["SPARK_DAEMON_JAVA_OPTS"]
    # The default of spark.worker.decommission.signal, sent to process 1, which must be the worker itself.
    assert hook().startswith("kill -s PWR 1\n")
    assert container("workers.yaml")["command"][0].endswith("/spark-class")


def test_the_hook_waits_until_the_executors_have_gone(tmp_path: Path) -> None:
    signals, executor = tmp_path / "signals", tmp_path / "proc" / "17" / "cmdline"
    for number, command in ((1, "java\0Worker"), (17, "java\0org…CoarseGrainedExecutorBackend\0--cores")):
        cmdline = tmp_path / "proc" / str(number) / "cmdline"
        cmdline.parent.mkdir(parents=True)
        cmdline.write_text(command)
    script = f'kill() {{ echo "$@" > {signals}; }}\n{hook()}'.replace("/proc/", f"{tmp_path}/proc/")
    process = subprocess.Popen(["/bin/sh", "-c", script])
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


def test_workers_and_driver_find_the_master_by_the_name_of_its_service() -> None:
    service = read("master-service.yaml")
    url = f"spark://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
    assert container("workers.yaml")["command"][-1] == url
    submit = container("driver.yaml")["command"]
    assert submit[submit.index("--master") + 1] == url
    assert service["spec"]["selector"] == read("master.yaml")["spec"]["template"]["metadata"]["labels"]
    names = {port["name"]: port["containerPort"] for port in container("master.yaml")["ports"]}
    assert all(names[port["targetPort"]] == port["port"] for port in service["spec"]["ports"])


def test_the_name_of_the_service_does_not_break_the_master() -> None:
    # With service links, SPARK_MASTER_PORT is tcp://ADDRESS:7077, which the master reads as a number.
    assert read("master.yaml")["spec"]["template"]["spec"]["enableServiceLinks"] is False


def test_a_worker_looks_for_a_restarted_master_under_its_name() -> None:
    options = environment()["SPARK_DAEMON_JAVA_OPTS"].split()
    assert "-Dspark.worker.preferConfiguredMasterAddress=true" in options


def test_the_driver_uses_what_workers_there_are_and_is_asked_for_its_metrics() -> None:
    settings = dict(part.split("=", 1) for part in container("driver.yaml")["command"] if "=" in part)
    assert settings["spark.elastic.schedulerMode"] == "reactive"
    assert load(settings)[MODE] == "reactive"
    assert "spark.cores.max" not in settings
    labels = read("driver.yaml")["spec"]["template"]["metadata"]["labels"]
    assert read("driver-ui.yaml")["spec"]["selector"] == labels


@pytest.mark.parametrize("name", ["master.yaml", "driver.yaml"])
def test_there_is_never_a_second_one(name: str) -> None:
    spec = read(name)["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
