"""Tests that operators take what the chart renders for them, by the schemas of their releases.

Those of Apache's and of Prometheus' operator are in no registry: tests/unit/kubernetes lists their fields.
"""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest

from integration.chart.crds import KEDA, KUBEFLOW, Source, check
from integration.go_modules import missing_go
from tests.unit.kubernetes.rendered import NAMES, manifest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(missing_go() is not None, reason=str(missing_go())),
]
SOURCES = {
    "keda.sh/v1alpha1": KEDA,
    "sparkoperator.k8s.io/v1beta2": KUBEFLOW,
}
FOUND = [
    pytest.param(each, SOURCES[each["apiVersion"]], id=f"{name}-{each['kind']}")
    for name in NAMES
    for each in manifest(name).objects
    if each["apiVersion"] in SOURCES
]


@pytest.mark.parametrize(("found", "source"), FOUND)
def test_an_operator_takes_its_object(found: dict[str, Any], source: Source) -> None:
    check(found, source)


@pytest.mark.parametrize(("found", "source"), FOUND)
def test_a_field_that_an_operator_does_not_know_is_found(found: dict[str, Any], source: Source) -> None:
    broken = copy.deepcopy(found)
    broken["spec"]["selectr"] = {}
    with pytest.raises(jsonschema.ValidationError):
        check(broken, source)


def test_settings_have_to_be_texts() -> None:
    broken = copy.deepcopy(manifest("adaptive-kubeflow").one("SparkApplication"))
    broken["spec"]["sparkConf"]["spark.decommission.enabled"] = True
    with pytest.raises(jsonschema.ValidationError):
        check(broken, KUBEFLOW)
