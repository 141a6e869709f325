"""Tests that a real API server accepts every manifest."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from integration.chart.crds import KEDA, KUBEFLOW
from integration.kubernetes.application import MANIFESTS
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.kubectl import Refused

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

OBJECTS = sorted(MANIFESTS.glob("manifests/*.yaml"))
# Of operators whose resources no package registry describes.
UNDESCRIBED = ("spark.apache.org/v1", "monitoring.coreos.com/v1")


def name_of(path: Path) -> str:
    return str(path.relative_to(MANIFESTS))


@pytest.fixture(scope="module")
def defined(cluster: Cluster) -> None:
    for source in (KEDA, KUBEFLOW):
        definition = source.read()
        # Too large for the annotation that `apply` keeps by default.
        cluster.kubectl.apply(definition, "--server-side")
        name = yaml.safe_load(definition)["metadata"]["name"]
        cluster.kubectl.run("wait", "--for=condition=Established", f"crd/{name}", "--timeout=60s")


@pytest.mark.usefixtures("defined")
@pytest.mark.parametrize("manifest", OBJECTS, ids=name_of)
def test_the_api_server_accepts_a_manifest(cluster: Cluster, manifest: Path) -> None:
    objects = [
        each
        for each in yaml.safe_load_all(manifest.read_text())
        if each and each["apiVersion"] not in UNDESCRIBED
    ]
    flags = ("--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts")
    said = cluster.kubectl.within("spark").apply(yaml.safe_dump_all(objects), *flags)
    assert said.count("serverside-applied") == len(objects) > 0


def test_what_it_would_refuse_is_found(cluster: Cluster) -> None:
    text = (MANIFESTS / "manifests" / "reactive-hpa.yaml").read_text()
    broken = next(each for each in yaml.safe_load_all(text) if each and each["kind"] == "Deployment")
    broken["spec"]["template"]["spec"]["graceperiod"] = 1
    with pytest.raises(Refused, match="graceperiod"):
        cluster.kubectl.within("spark").apply(
            yaml.safe_dump(broken), "--server-side", "--dry-run=server", "--validate=strict"
        )
