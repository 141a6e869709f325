"""Kubeflow's Spark operator on a cluster, built from its released sources and installed by its Helm chart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from integration.chart.crds import KUBEFLOW
from integration.go_modules import Module, module_folder, programs_of
from integration.kubernetes.application import IN_FORCE_S
from integration.kubernetes.chart import helm_on
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.images import SPARK_IMAGE, Images

OPERATOR = Module(KUBEFLOW.module, KUBEFLOW.version, {"spark-operator": f"{KUBEFLOW.module}/cmd/operator"})
_RELEASE = _PLACE = "spark-operator"
_INSTALLED = ("--create-namespace", "--wait", "--timeout=5m")
_REGISTRY, _REPOSITORY, _TAG = "localhost", "spark-operator", "1"


@contextmanager
def operator_on(cluster: Cluster, images: Images) -> Iterator[None]:
    """Run the operator for all namespaces; it goes with the block.

    Its image has the Spark of the applications. It has no webhook, which changes pods: applications of the
    chart bring templates for these.
    """
    program = programs_of(OPERATOR)["spark-operator"]
    cluster.load(images.program(program, f"{_REGISTRY}/{_REPOSITORY}:{_TAG}", SPARK_IMAGE))
    values = {
        "image": {"registry": _REGISTRY, "repository": _REPOSITORY, "tag": _TAG, "pullPolicy": "Never"},
        "webhook": {"enable": False},
        "controller": {"leaderElection": {"enable": False}},
        # Drivers have the account of their own release.
        "spark": {"jobNamespaces": [""], "serviceAccount": {"create": False}, "rbac": {"create": False}},
    }
    chart = module_folder(OPERATOR.path, OPERATOR.version) / "charts" / "spark-operator-chart"
    kubectl = cluster.kubectl.within(_PLACE)
    file = kubectl.config.with_name("operator.yaml")
    file.write_text(json.dumps(values))
    try:
        helm_on(kubectl, "install", _RELEASE, str(chart), "--values", str(file), *_INSTALLED)
        yield
    finally:
        helm_on(kubectl, "uninstall", _RELEASE, "--wait", "--ignore-not-found")
        # Helm keeps these.
        kubectl.run("delete", f"--filename={chart / 'crds'}", "--ignore-not-found")
        cluster.kubectl.run("delete", "namespace", _PLACE, "--ignore-not-found", timeout_s=IN_FORCE_S)
