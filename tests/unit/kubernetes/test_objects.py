"""Tests of all manifests: objects have the published form, and what they name exists.

Kubernetes' own objects and all pods are checked against its published schemas, which a package provides.
"""

from __future__ import annotations

import copy
import re
from urllib.parse import urlsplit

import jsonschema
import kubernetes_validate
import pytest
import yaml

from spark_elastic.policy_file import load_policy
from spark_elastic.settings import load
from spark_elastic.spark_conf import PLUGIN, PLUGINS
from tests.unit.kubernetes.rendered import BROUGHT, NAMES, Manifest, Object, Pod, manifest

# The oldest version that the chart is for, and the newest known one.
VERSIONS = ("1.30", kubernetes_validate.latest_version())
ALL = pytest.mark.parametrize("name", NAMES)


def check(found: Manifest, version: str) -> None:
    """Raise for an object or a pod that Kubernetes would refuse."""
    for each in found.objects:
        if each["kind"] not in BROUGHT:
            kubernetes_validate.validate(each, version, strict=True)
    for pod in found.pods():
        whole = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": pod.labels}, "spec": pod.spec}
        kubernetes_validate.validate(whole, version, strict=True)


@ALL
@pytest.mark.parametrize("version", VERSIONS)
def test_objects_have_the_published_form(name: str, version: str) -> None:
    check(manifest(name), version)


@ALL
def test_a_field_that_does_not_exist_is_found(name: str) -> None:
    found = copy.deepcopy(manifest(name))
    found.one("Service", "driver")["spec"]["selectr"] = {}
    with pytest.raises(jsonschema.ValidationError):
        check(found, VERSIONS[0])


@pytest.mark.parametrize("name", ["reactive-apache", "adaptive-kubeflow", "adaptive-apache"])
def test_a_field_of_a_pod_that_an_operator_makes_is_checked_too(name: str) -> None:
    found = copy.deepcopy(manifest(name))
    found.pods()[0].spec["volume"] = []
    with pytest.raises(jsonschema.ValidationError):
        check(found, VERSIONS[0])


@ALL
def test_names_are_unique_and_in_one_namespace(name: str) -> None:
    found = manifest(name).objects
    assert {each["metadata"]["namespace"] for each in found} == {"spark"}
    names = [(each["kind"], each["metadata"]["name"]) for each in found]
    assert len(set(names)) == len(names)


@ALL
def test_a_workload_selects_its_own_pods_and_no_others(name: str) -> None:
    found = manifest(name)
    for each in found.of("Deployment"):
        selector = each["spec"]["selector"]["matchLabels"]
        component = each["metadata"]["labels"]["app.kubernetes.io/component"]
        assert [pod.component for pod in found.pods() if pod.matches(selector)] == [component]


@ALL
def test_a_service_leads_to_a_port_of_one_kind_of_pods(name: str) -> None:
    found = manifest(name)
    for each in found.of("Service"):
        pods = [pod for pod in found.pods() if pod.matches(each["spec"]["selector"])]
        if name == "adaptive-submit":  # its driver comes with spark-submit
            assert pods == []
            continue
        (pod,) = pods
        listed = {port["name"]: port["containerPort"] for port in pod.container.get("ports", [])}
        for port in each["spec"]["ports"]:
            # Spark itself lists the port of its UI in a driver that it makes.
            assert listed.get(port["name"], 4040) == port["port"]
            assert port["targetPort"] in (port["name"], port["port"])


def volumes(pod: Pod) -> dict[str, Object]:
    return {volume["name"]: volume for volume in pod.spec.get("volumes", [])}


@ALL
def test_what_is_mounted_exists(name: str) -> None:
    found = manifest(name)
    for pod in found.pods():
        mounted = [mount["name"] for mount in pod.container.get("volumeMounts", [])]
        assert sorted(mounted) == sorted(volumes(pod))
        for volume in volumes(pod).values():
            if "configMap" in volume:
                assert volume["configMap"]["name"] in found.names("ConfigMap")
            else:
                assert volume["persistentVolumeClaim"]["claimName"] == "checkpoints"  # the user's


@ALL
def test_settings_turn_the_plugin_on_and_can_be_read(name: str) -> None:
    found = manifest(name)
    if name == "adaptive-submit":
        assert [pod.component for pod in found.pods()] == []  # its settings: submit/application.conf
        return
    conf = found.conf()
    assert conf[PLUGINS] == PLUGIN
    load(conf)
    # Executors end gracefully, and nothing but the plugin or an autoscaler adds any.
    assert conf["spark.decommission.enabled"] == "true"
    assert conf["spark.dynamicAllocation.enabled"] == "false"
    assert "spark.cores.max" not in conf


@ALL
def test_files_that_settings_name_are_there_and_can_be_read(name: str) -> None:
    found = manifest(name)
    (files,) = found.of("ConfigMap") or [{"data": {}}]
    policy = files["data"].get("policy.yaml")
    if policy is not None:
        assert load_policy(policy.encode()).queries
    if name == "adaptive-submit":
        return
    named = [value for value in found.conf().values() if value.startswith("/etc/")]
    assert sorted(named) == sorted(f"/etc/spark-elastic/{file}" for file in files["data"])
    if named:
        (mount,) = (
            mount
            for mount in found.pod("driver").container["volumeMounts"]
            if mount["name"] == "spark-elastic"
        )
        assert mount["mountPath"] == "/etc/spark-elastic"
        assert "subPath" not in mount  # Kubernetes never updates a file that is mounted by subPath


@ALL
def test_pods_have_room_for_what_runs_in_them(name: str) -> None:
    found = manifest(name)
    for pod in found.pods():
        if "resources" not in pod.container:  # Spark computes them
            continue
        limit = mebibytes(pod.container["resources"]["limits"]["memory"])
        assert pod.container["resources"]["requests"]["memory"] == f"{limit}Mi"
        if pod.component == "driver":
            # The policy process runs beside the JVM.
            assert limit >= mebibytes(found.conf()["spark.driver.memory"]) + 512
        elif pod.component == "master":
            assert limit >= mebibytes(pod.environment["SPARK_DAEMON_MEMORY"]) + 512
        else:
            executor = mebibytes(pod.environment["SPARK_WORKER_MEMORY"])
            assert executor == mebibytes(found.conf()["spark.executor.memory"])
            assert limit >= executor + mebibytes(pod.environment["SPARK_DAEMON_MEMORY"]) + 512


def mebibytes(size: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(\w+)", size).groups()  # type: ignore[union-attr]
    return int(number) * {"m": 1, "Mi": 1, "g": 1024, "Gi": 1024}[unit]


@ALL
def test_no_pod_runs_as_root_or_gets_a_token_that_it_does_not_need(name: str) -> None:
    for pod in manifest(name).pods():
        assert pod.spec["securityContext"]["runAsNonRoot"]
        assert pod.container["securityContext"]["allowPrivilegeEscalation"] is False
        needs = pod.component == "driver" and not name.startswith("reactive")
        assert pod.spec.get("automountServiceAccountToken", True) is needs


@ALL
def test_rights_are_those_of_the_account_in_its_own_namespace(name: str) -> None:
    found = manifest(name)
    assert not found.of("ClusterRole")
    assert bool(found.of("ServiceAccount")) == (not name.startswith("reactive"))
    for binding in found.of("RoleBinding"):
        assert binding["roleRef"]["name"] in found.names("Role")
        (subject,) = binding["subjects"]
        assert (subject["kind"], subject["namespace"]) == ("ServiceAccount", "spark")
        assert subject["name"] in found.names("ServiceAccount")
        if name != "adaptive-submit":
            account = "spark.kubernetes.authenticate.driver.serviceAccountName"
            assert found.conf()[account] == subject["name"]
        if name == "adaptive":
            assert found.pod("driver").spec["serviceAccountName"] == subject["name"]


@ALL
def test_prometheus_finds_the_port_of_the_metrics(name: str) -> None:
    found = manifest(name)
    for monitor in found.of("ServiceMonitor"):
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        (service,) = (each for each in found.of("Service") if wanted <= each["metadata"]["labels"].items())
        (endpoint,) = monitor["spec"]["endpoints"]
        assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
        assert endpoint["path"] == "/elastic/metrics/"


def test_connections_come_from_pods_of_the_release_alone_and_to_the_ui_from_prometheus() -> None:
    found = manifest("reactive-keda")
    all_pods, driver = found.one("NetworkPolicy", "pods"), found.one("NetworkPolicy", "driver")
    everyone = all_pods["spec"]["podSelector"]["matchLabels"]
    assert [pod for pod in found.pods() if not pod.matches(everyone)] == []
    assert all_pods["spec"]["ingress"] == [{"from": [{"podSelector": {"matchLabels": everyone}}]}]
    reached = [pod for pod in found.pods() if pod.matches(driver["spec"]["podSelector"]["matchLabels"])]
    assert [pod.component for pod in reached] == ["driver"]
    assert driver["spec"]["ingress"][0]["ports"] == [{"port": 4040}]


def test_a_host_that_a_manifest_names_is_a_service_in_it() -> None:
    for name in NAMES:
        found = manifest(name)
        text = yaml.safe_dump_all(found.objects)
        for url in re.findall(r"(?:spark|http)://orders[\w.-]*:\d+", text):
            host, port = urlsplit(url).hostname, urlsplit(url).port
            assert host is not None
            if name == "reactive-apache" and host == "orders-master-svc":
                continue  # made by the operator
            (service,) = (
                each for each in found.of("Service") if each["metadata"]["name"] == host.split(".")[0]
            )
            assert port in [each["port"] for each in service["spec"]["ports"]]
