"""Tests of the form of what operators read whose schemas are in no package registry.

FIELDS has the fields in use: of Apache's operator, from version 1.0.0, and of Prometheus'. The pods in them
are checked with all others. integration/chart checks the objects of other operators.
"""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest

from tests.unit.kubernetes.rendered import NAMES, Object, manifest

TEXT = {"type": "string", "minLength": 1}
COUNT = {"type": "integer", "minimum": 0}
# All values are texts: true and 2 without quotes are refused.
CONF = {"type": "object", "additionalProperties": TEXT}


def only(**fields: Any) -> dict[str, Any]:
    """Describe an object with these fields and no others."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


POD = only(podTemplateSpec=only(metadata={"type": "object"}, spec={"type": "object"}))
WORKLOAD = only(template=only(metadata={"type": "object"}, spec={"type": "object"}))
VERSIONS = only(sparkVersion=TEXT)
FIELDS = {
    "SparkApplication": only(
        pyFiles=TEXT,
        runtimeVersions=VERSIONS,
        applicationTolerations=only(
            restartConfig=only(
                restartPolicy={"enum": ["Always", "Never", "OnFailure", "OnInfrastructureFailure"]},
                maxRestartAttempts=COUNT,
                restartBackoffMillis=COUNT,
            )
        ),
        sparkConf=CONF,
        driverSpec=POD,
        executorSpec=POD,
    ),
    "SparkCluster": only(
        runtimeVersions=VERSIONS,
        clusterTolerations=only(instanceConfig=only(initWorkers=COUNT, minWorkers=COUNT, maxWorkers=COUNT)),
        sparkConf=CONF,
        masterSpec=only(statefulSetSpec=WORKLOAD),
        workerSpec=only(statefulSetSpec=WORKLOAD),
    ),
    "ServiceMonitor": only(
        selector=only(matchLabels={"type": "object", "additionalProperties": TEXT}),
        endpoints={"type": "array", "items": only(port=TEXT, path=TEXT, interval=TEXT)},
    ),
}
CLUSTER = manifest("reactive-apache").one("SparkCluster")
FOUND = [
    manifest("adaptive-apache").one("SparkApplication"),
    CLUSTER,
    *(each for name in NAMES for each in manifest(name).of("ServiceMonitor")),
]


@pytest.mark.parametrize("found", FOUND, ids=lambda found: found["kind"])
def test_the_operator_knows_the_fields(found: Object) -> None:
    assert found["apiVersion"] in ("spark.apache.org/v1", "monitoring.coreos.com/v1")
    jsonschema.validate(found["spec"], FIELDS[found["kind"]])


def test_settings_have_to_be_texts() -> None:
    broken = copy.deepcopy(CLUSTER["spec"])
    broken["sparkConf"]["spark.decommission.enabled"] = True
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, FIELDS["SparkCluster"])


def test_workers_of_a_cluster_let_the_driver_connect_to_them() -> None:
    # The operator's network policy admits only such pods.
    driver = manifest("reactive-apache").pod("driver")
    assert driver.labels["spark.operator/spark-cluster-name"] == CLUSTER["metadata"]["name"]


def test_an_image_is_pulled_when_the_values_say_so() -> None:
    for spec in (CLUSTER["spec"]["masterSpec"], CLUSTER["spec"]["workerSpec"]):
        (container,) = spec["statefulSetSpec"]["template"]["spec"]["containers"]
        assert container["imagePullPolicy"] == "IfNotPresent"


def test_pods_of_a_cluster_are_pods_of_the_release() -> None:
    for spec in (CLUSTER["spec"]["masterSpec"], CLUSTER["spec"]["workerSpec"]):
        labels = spec["statefulSetSpec"]["template"]["metadata"]["labels"]
        assert labels["app.kubernetes.io/instance"] == "orders"
