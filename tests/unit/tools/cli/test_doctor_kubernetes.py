"""Tests of what `spark-elastic doctor --live` says of an application on Kubernetes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.unit.tools.cli.served import Canned, Served

ENVIRONMENT = "/api/v1/applications/app-1/environment"
CONF = {
    "spark.master": "k8s://https://10.0.0.1:6443",
    "spark.kubernetes.namespace": "streams",
    "spark.executor.instances": "1",
    "spark.executor.maxNumFailures": "2147483647",
}
# Prints the answer to `get KIND` for the expected namespace, if there is one.
KUBECTL = """\
#!/bin/sh
test "$1 $2" = "--namespace=streams get" || { echo "not asked like this: $*" >&2; exit 1; }
case "$4" in --field-selector=metadata.name=orders-driver) set -- "$1" "$2" driver ;; esac
cat "$(dirname "$0")/$3.json" 2>/dev/null && exit
echo 'E0101 something else' >&2
echo "Error from server (Forbidden): $3 is forbidden" >&2
exit 1
"""


def told(driver: Served, conf: dict[str, str]) -> None:
    """Let Spark's own API tell these settings."""
    driver.canned[ENVIRONMENT] = Canned(200, json.dumps({"sparkProperties": list(conf.items())}))


def pod(number: int, phase: str, **status: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": "500m", "memory": "768Mi"}, "limits": {"memory": "768Mi"}}
    return {
        "metadata": {"name": f"app-exec-{number}"},
        "spec": {"containers": [{"name": "spark-kubernetes-executor", "resources": resources}]},
        "status": {"phase": phase, **status},
    }


def unscheduled(number: int) -> dict[str, Any]:
    told = {"reason": "Unschedulable", "message": "0/1 nodes are available: 1 Insufficient cpu."}
    return pod(number, "Pending", conditions=[{"type": "PodScheduled", "status": "False", **told}])


def waiting(number: int, reason: str, **more: str) -> dict[str, Any]:
    scheduled = [{"type": "PodScheduled", "status": "True"}]
    states = [{"state": {"waiting": {"reason": reason, **more}}}]
    return pod(number, "Pending", conditions=scheduled, containerStatuses=states)


def quota(hard: dict[str, str], used: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": "few"}, "status": {"hard": hard, "used": used}}


@pytest.fixture
def kubectl(tmp_path: Path) -> Path:
    """Return the folder of a kubectl that answers with what `answer` has left there."""
    program = tmp_path / "kubectl"
    program.write_text(KUBECTL)
    program.chmod(0o755)
    return tmp_path


def answer(folder: Path, pods: list[dict[str, Any]], quotas: list[dict[str, Any]]) -> None:
    (folder / "pods.json").write_text(json.dumps({"items": pods}))
    (folder / "resourcequotas.json").write_text(json.dumps({"items": quotas}))


def doctor(driver: Served, folder: Path) -> list[tuple[str, str, str]]:
    """Return check, status and finding of what concerns Kubernetes."""
    path = f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin"
    result = driver.run("doctor", "--live", "--json", PATH=path)
    assert result.exit_code == 0, result.output
    ours = ("failures", "pods", "quota", "memory")
    found = [check for check in json.loads(result.stdout) if check["check"] in ours]
    assert all((check["change"] is None) == (check["status"] == "ok") for check in found)
    return [(check["check"], check["status"], check["found"]) for check in found]


def test_pods_that_run(driver: Served, kubectl: Path) -> None:
    told(driver, CONF)
    answer(kubectl, [pod(1, "Running"), pod(2, "Running"), pod(3, "Succeeded")], [])
    assert doctor(driver, kubectl) == [("pods", "ok", "2 running")]


def test_why_pods_are_pending(driver: Served, kubectl: Path) -> None:
    told(driver, CONF)
    pull = waiting(4, "ImagePullBackOff", message='Back-off pulling image "orders:1"')
    pods = [pod(1, "Running"), unscheduled(2), unscheduled(3), pull, waiting(5, "ContainerCreating")]
    answer(kubectl, pods, [])
    assert doctor(driver, kubectl) == [
        ("pods", "ok", "1 running"),
        ("pods", "warn", "2 pending: 0/1 nodes are available: 1 Insufficient cpu."),
        ("pods", "warn", '1 pending: ImagePullBackOff: Back-off pulling image "orders:1"'),
        ("pods", "warn", "1 pending: being started"),
    ]
    lines = driver.run("doctor", "--live", PATH=f"{kubectl}{os.pathsep}/usr/bin{os.pathsep}/bin").output
    assert "kubectl --namespace=streams describe pod app-exec-2" in lines


@pytest.mark.parametrize(
    ("hard", "used", "full"),
    [
        ({"pods": "2"}, {"pods": "1"}, None),
        ({"pods": "1"}, {"pods": "1"}, "pods 1 of 1"),
        ({"requests.cpu": "2"}, {"requests.cpu": "1500m"}, None),
        ({"requests.cpu": "2"}, {"requests.cpu": "1600m"}, "requests.cpu 1600m of 2"),
        ({"limits.memory": "2Gi"}, {"limits.memory": "1280Mi"}, None),
        ({"limits.memory": "2Gi"}, {"limits.memory": "1281Mi"}, "limits.memory 1281Mi of 2Gi"),
        ({"memory": "1G"}, {"memory": "768Mi"}, "memory 768Mi of 1G"),
        ({"count/secrets": "1"}, {"count/secrets": "1"}, None),
        ({"pods": "1"}, {}, None),
    ],
)
def test_quotas_without_room(
    driver: Served, kubectl: Path, hard: dict[str, str], used: dict[str, str], full: str | None
) -> None:
    told(driver, CONF)
    answer(kubectl, [pod(1, "Running")], [quota(hard, used)])
    found = [f"few has no room for another executor: {full}"] if full else []
    assert doctor(driver, kubectl) == [
        ("pods", "ok", "1 running"),
        *(("quota", "warn", each) for each in found),
    ]


@pytest.mark.parametrize(
    ("memory", "limit", "said"),
    [
        ("1g", "1536Mi", ("ok", "512 MiB beside the heap of the driver")),
        ("1024", "1536Mi", ("ok", "512 MiB beside the heap of the driver")),
        ("1g", "1535Mi", ("warn", "the driver's container has 511 MiB beside the heap of 1024 MiB")),
        # By default Spark adds 384 MiB, or a tenth.
        ("1g", "1408Mi", ("warn", "the driver's container has 384 MiB beside the heap of 1024 MiB")),
        ("8g", "9011Mi", ("warn", "the driver's container has 819 MiB beside the heap of 8192 MiB")),
        ("8g", "9139Mi", ("ok", "947 MiB beside the heap of the driver")),
        ("1g", None, None),
        ("much", "1Gi", None),
    ],
)
def test_room_for_the_policy_process(
    driver: Served, kubectl: Path, memory: str, limit: str | None, said: tuple[str, str] | None
) -> None:
    of_driver = {"spark.driver.memory": memory, "spark.kubernetes.driver.pod.name": "orders-driver"}
    told(driver, {**CONF, **of_driver})
    answer(kubectl, [pod(1, "Running")], [])
    limits = {"limits": {"memory": limit}} if limit else {}
    containers = [
        {"name": "sidecar", "resources": {"limits": {"memory": "9Gi"}}},
        {"name": "spark-kubernetes-driver", "resources": limits},
    ]
    of_pod = {"metadata": {"name": "orders-driver"}, "spec": {"containers": containers}}
    (kubectl / "driver.json").write_text(json.dumps({"items": [of_pod]}))
    found = [
        (status, what.partition(";")[0]) for name, status, what in doctor(driver, kubectl) if name == "memory"
    ]
    assert found == ([said] if said else [])


def test_a_driver_whose_pod_is_not_shown(driver: Served, kubectl: Path) -> None:
    told(driver, {**CONF, "spark.kubernetes.driver.pod.name": "orders-driver"})
    answer(kubectl, [pod(1, "Running")], [])
    assert doctor(driver, kubectl) == [("pods", "ok", "1 running")]


def test_no_pods_at_all(driver: Served, kubectl: Path) -> None:
    told(driver, CONF)
    answer(kubectl, [], [quota({"pods": "1"}, {"pods": "1"})])
    assert doctor(driver, kubectl) == [
        ("pods", "warn", "no executor of it has a pod in the namespace streams"),
        ("quota", "warn", "few has no room for another executor: pods 1 of 1"),
    ]


def test_kubectl_that_may_not_look(driver: Served, kubectl: Path) -> None:
    told(driver, CONF)
    said = "not looked at: kubectl says: Error from server (Forbidden): pods is forbidden"
    assert doctor(driver, kubectl) == [("pods", "ok", said)]


def test_no_kubectl(driver: Served, tmp_path: Path) -> None:
    told(driver, CONF)
    result = driver.run("doctor", "--live", PATH=str(tmp_path))
    assert "pods          not looked at: there is no kubectl here\n" in result.output


@pytest.mark.parametrize(
    ("conf", "most"),
    [
        ({"spark.executor.instances": "1"}, 3),
        ({"spark.executor.instances": "4"}, 8),
        ({}, 3),
        ({"spark.executor.maxNumFailures": "5"}, None),
        ({"spark.executor.failuresValidityInterval": "1h"}, None),
        ({"spark.dynamicAllocation.enabled": "true"}, None),
    ],
)
def test_failures_that_end_an_application(
    driver: Served, kubectl: Path, conf: dict[str, str], most: int | None
) -> None:
    told(driver, {"spark.master": CONF["spark.master"], "spark.kubernetes.namespace": "streams", **conf})
    answer(kubectl, [pod(1, "Running")], [])
    first, *others = doctor(driver, kubectl)
    if most is None:
        assert (first, others) == (("pods", "ok", "1 running"), [])
    else:
        assert first[:2] == ("failures", "warn")
        assert f"after more than {most} failures of executors" in first[2]


@pytest.mark.parametrize("conf", [{"spark.master": "spark://host:7077"}, {}])
def test_nothing_is_said_of_other_cluster_managers(
    driver: Served, kubectl: Path, conf: dict[str, str]
) -> None:
    told(driver, conf)
    assert doctor(driver, kubectl) == []


def test_nothing_is_said_if_spark_does_not_tell_its_settings(driver: Served, kubectl: Path) -> None:
    driver.canned[ENVIRONMENT] = Canned(404)
    assert doctor(driver, kubectl) == []
