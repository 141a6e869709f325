"""Tests of what runs on Kubernetes itself: the chart, operators and spark-submit start alike drivers."""

from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest
import yaml

from spark_elastic.core.keys.rescaling import MODE
from spark_elastic.settings import load
from spark_elastic.spark_conf import read_properties
from spark_elastic_tools.cli.kubernetes import executor_failures
from tests.unit.kubernetes.rendered import ADAPTIVE, FOLDER, Pod, manifest
from tests.unit.kubernetes.test_objects import VERSIONS

SUBMIT = FOLDER / "submit"
OPERATED = ("adaptive-kubeflow", "adaptive-apache")
# What only a driver needs that the chart itself starts, and only one that spark-submit makes a pod for.
OF_THE_CHART = {
    "spark.master",
    "spark.driver.host",
    "spark.driver.port",
    "spark.driver.blockManager.port",
    "spark.kubernetes.driver.pod.name",
    "spark.kubernetes.executor.podTemplateFile",
}
OF_SUBMIT = {"spark.kubernetes.driver.podTemplateFile"}


def settings() -> dict[str, str]:
    return read_properties(SUBMIT / "application.conf")


def submitted_pod() -> dict[str, Any]:
    found = yaml.safe_load((SUBMIT / "driver-pod.yaml").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_the_template_for_spark_submit_has_the_published_form(version: str) -> None:
    kubernetes_validate.validate(submitted_pod(), version, strict=True)


def without(conf: dict[str, str], names: set[str]) -> dict[str, str]:
    return {key: value for key, value in conf.items() if key not in names}


def test_the_driver_has_the_same_settings_whatever_starts_it() -> None:
    own, apache = (manifest(name).conf() for name in ("adaptive", "adaptive-apache"))
    assert without(own, OF_THE_CHART) == apache == without(settings(), OF_SUBMIT)
    # It has the namespace of its object. Its operator may not make what Spark 4.2 would make with the driver.
    kubeflow = manifest("adaptive-kubeflow").conf()
    left_out = kubeflow.pop("spark.kubernetes.driver.pod.excludedFeatureSteps")
    assert left_out.endswith(".NetworkPolicyFeatureStep")
    assert kubeflow == without(apache, {"spark.kubernetes.namespace"})
    assert load(apache)[MODE] == "adaptive"


@pytest.mark.parametrize("name", ["adaptive", *OPERATED])
def test_failed_executors_do_not_end_an_application(name: str) -> None:
    assert list(executor_failures({"spark.executor.instances": "1"}))
    assert list(executor_failures(manifest(name).conf())) == []


def test_pods_are_the_same_whatever_starts_them() -> None:
    submitted = Pod(submitted_pod()["metadata"]["labels"], submitted_pod()["spec"])
    kubeflow, apache = map(manifest, OPERATED)
    assert kubeflow.pod("driver") == apache.pod("driver") == submitted
    assert kubeflow.pod("executor") == apache.pod("executor") == manifest("adaptive").pod("executor")


def test_a_driver_has_time_to_stop_its_queries() -> None:
    for name in ADAPTIVE:
        for pod in manifest(name).pods():
            if pod.component == "driver":
                assert pod.spec["terminationGracePeriodSeconds"] == 60


def test_what_is_submitted_finds_what_was_installed_for_it() -> None:
    found = manifest("adaptive-submit")
    account = settings()["spark.kubernetes.authenticate.driver.serviceAccountName"]
    assert found.names("ServiceAccount") == {account}
    (volume,) = submitted_pod()["spec"]["volumes"]
    assert found.names("ConfigMap") == {volume["configMap"]["name"]}
    assert settings()["spark.kubernetes.namespace"] == found.one("ServiceAccount")["metadata"]["namespace"]
    selector = found.one("Service")["spec"]["selector"]
    assert Pod(submitted_pod()["metadata"]["labels"], {}).matches(selector)


def test_a_driver_of_the_chart_owns_its_executors() -> None:
    conf, pod = manifest("adaptive").conf(), manifest("adaptive").pod("driver")
    assert conf["spark.kubernetes.driver.pod.name"] == "$(POD_NAME)"
    assert conf["spark.driver.host"] == "$(POD_IP)"
    assert {"POD_NAME", "POD_IP"} <= {each["name"] for each in pod.container["env"]}
    ports = {port["name"]: str(port["containerPort"]) for port in pod.container["ports"]}
    assert ports["driver"] == conf["spark.driver.port"]
    assert ports["block-manager"] == conf["spark.driver.blockManager.port"]


def test_labels_that_kubeflows_operator_gives_to_all_pods_contradict_none_of_their_own() -> None:
    found = manifest("adaptive-kubeflow")
    given = found.one("SparkApplication")["metadata"]["labels"]
    for pod in found.pods():
        assert {**pod.labels, **given}.items() >= pod.labels.items()


def test_an_operator_starts_the_application_again() -> None:
    kubeflow, apache = (manifest(name).one("SparkApplication")["spec"] for name in OPERATED)
    again = kubeflow["restartPolicy"]
    assert again.pop("type") == "Always"
    # It has no defaults where the operator runs without its webhook.
    assert again == {"onFailureRetryInterval": 5, "onSubmissionFailureRetryInterval": 5}
    # By default it starts an application three times again.
    assert apache["applicationTolerations"]["restartConfig"] == {
        "restartPolicy": "Always",
        "maxRestartAttempts": 2**31 - 1,
        "restartBackoffMillis": 5_000,
    }
