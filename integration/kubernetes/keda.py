"""KEDA on a cluster, built from its released sources, with the objects of its release."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from integration.chart.crds import KEDA as CRD
from integration.go_modules import Module, module_folder, programs_of
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.images import Images
from integration.kubernetes.monitoring import applied, wait_for, wait_for_external_metrics

KEDA = Module(
    CRD.module,
    CRD.version,
    {
        "keda": f"{CRD.module}/cmd/operator",
        "keda-adapter": f"{CRD.module}/cmd/adapter",
        "keda-admission-webhooks": f"{CRD.module}/cmd/webhooks",
    },
)
_PLACE = "keda"
_NOBODY = 65532
# Else kubectl keeps each object in an annotation of its own, for which KEDA's definitions are too large.
_LARGE = "--server-side"


@contextmanager
def keda_on(cluster: Cluster, images: Images) -> Iterator[None]:
    """Run KEDA for all namespaces; it goes with the block."""
    names = {}
    for name, program in programs_of(KEDA).items():
        names[f"/{name}"] = f"localhost/{name}:1"
        cluster.load(images.program(program, names[f"/{name}"]))
    folder = module_folder(KEDA.path, KEDA.version) / "config" / "default"
    objects = list(yaml.safe_load_all(cluster.kubectl.run("kustomize", str(folder))))
    deployments = [each for each in objects if each["kind"] == "Deployment"]
    for deployment in deployments:
        _use(names, deployment["spec"]["template"]["spec"])
    with applied(cluster.kubectl, objects, _LARGE):
        for deployment in deployments:
            wait_for(cluster.kubectl.within(_PLACE), deployment["metadata"]["name"])
        wait_for_external_metrics(cluster.kubectl)
        yield


def _use(names: dict[str, str], pod: dict[str, Any]) -> None:
    """Let a pod run our images, which name no user."""
    pod["securityContext"]["runAsUser"] = _NOBODY
    (container,) = pod["containers"]
    container |= {"image": names[container["command"][0]], "imagePullPolicy": "Never"}
