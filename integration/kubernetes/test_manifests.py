"""Tests that a real API server accepts every manifest."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from integration.kubernetes.application import MANIFESTS
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.kubectl import Refused
from integration.kubernetes.parts import module_folder

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

# Where each operator's resources are described.
DEFINITIONS = (
    ("github.com/kedacore/keda/v2", "v2.17.2", "config/crd/bases/keda.sh_scaledobjects.yaml"),
    (
        "github.com/kubeflow/spark-operator/v2",
        "v2.3.0",
        "config/crd/bases/sparkoperator.k8s.io_sparkapplications.yaml",
    ),
)
# Values for a chart are no object, and Spark completes the template of the driver's pod.
OBJECTS = sorted(
    path
    for path in MANIFESTS.rglob("*.yaml")
    if "name" in next(yaml.safe_load_all(path.read_text())).get("metadata", {})
)


def name_of(path: Path) -> str:
    return str(path.relative_to(MANIFESTS))


@pytest.fixture(scope="module")
def defined(cluster: Cluster) -> None:
    for module, version, file in DEFINITIONS:
        definition = (module_folder(module, version) / file).read_text()
        # Too large for the annotation that `apply` keeps by default.
        cluster.kubectl.apply(definition, "--server-side")
        name = yaml.safe_load(definition)["metadata"]["name"]
        cluster.kubectl.run("wait", "--for=condition=Established", f"crd/{name}", "--timeout=60s")


@pytest.mark.usefixtures("defined")
@pytest.mark.parametrize("manifest", OBJECTS, ids=name_of)
def test_the_api_server_accepts_a_manifest(cluster: Cluster, manifest: Path) -> None:
    said = cluster.kubectl.within("spark").apply(
        manifest.read_text(), "--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts"
    )
    assert said.count("serverside-applied") == len(list(yaml.safe_load_all(manifest.read_text())))


def test_what_it_would_refuse_is_found(cluster: Cluster) -> None:
    broken = yaml.safe_load((MANIFESTS / "workers.yaml").read_text())
    broken["spec"]["template"]["spec"]["graceperiod"] = 1
    with pytest.raises(Refused, match="graceperiod"):
        cluster.kubectl.apply(
            yaml.safe_dump(broken), "--server-side", "--dry-run=server", "--validate=strict"
        )
