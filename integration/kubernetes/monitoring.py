"""Prometheus and prometheus-adapter on a cluster, as conf/kubernetes says that they have to be set up.

Both are built from their released sources. Prometheus finds drivers by the scrape configuration in the page
about Kubernetes, and has the alert rules. The adapter has our values, and the objects of its release.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import yaml

from integration.go_modules import Module, module_folder, programs_of
from integration.kubernetes.application import IN_FORCE_S, MANIFESTS
from integration.kubernetes.cluster import Cluster
from integration.kubernetes.images import Images
from integration.kubernetes.kubectl import Kubectl, Refused
from integration.monitoring.prometheus import PROMETHEUS, RULES, PrometheusClient

ADAPTER = Module(
    "sigs.k8s.io/prometheus-adapter", "v0.12.0", {"adapter": "sigs.k8s.io/prometheus-adapter/cmd/adapter"}
)
PLACE = "monitoring"
"""The namespace of both."""
_PROMETHEUS_IMAGE, _ADAPTER_IMAGE = "localhost/prometheus:1", "localhost/prometheus-adapter:1"
_PORT = 9090
_EXTERNAL = "external.metrics.k8s.io"
# The objects of the adapter's release that serve external metrics; others are for what kubelets measure.
_ADAPTER_OBJECTS = (
    "service-account",
    "cluster-role",
    "cluster-role-binding",
    "cluster-role-binding-delegator",
    "role-binding-auth-reader",
    "service",
    "deployment",
)
_INTERVALS = ("--metrics-relist-interval=10s", "--metrics-max-age=1m")
Object = dict[str, Any]


def external(kubectl: Kubectl, namespace: str, metric: str, **labels: str) -> list[float]:
    """Return the values of a metric as an autoscaler gets them; none if it is unknown."""
    chosen = ",".join(f"{name}%3D{value}" for name, value in labels.items())
    path = f"/apis/{_EXTERNAL}/v1beta1/namespaces/{namespace}/{metric}?labelSelector={chosen}"
    try:
        found = json.loads(kubectl.run("get", "--raw", path))["items"]
    except Refused:
        # An adapter does not know a metric before its source has had it once.
        return []
    return [_quantity(each["value"]) for each in found]


@contextmanager
def prometheus_on(cluster: Cluster, images: Images) -> Iterator[PrometheusClient]:
    """Run Prometheus, as the service `prometheus` in the namespace `monitoring`; it goes with the block."""
    cluster.load(images.program(programs_of(PROMETHEUS)["prometheus"], _PROMETHEUS_IMAGE))
    kubectl = cluster.kubectl.within(PLACE)
    with applied(cluster.kubectl, list(_prometheus())):
        wait_for(kubectl, "prometheus")
        (pod,) = kubectl.items("pods", "app=prometheus")
        yield PrometheusClient(f"http://{pod['status']['podIP']}:{_PORT}")


@contextmanager
def adapted(cluster: Cluster, images: Images) -> Iterator[PrometheusClient]:
    """Run Prometheus and the adapter, which brings its metrics to Kubernetes; they go with the block."""
    cluster.load(images.program(programs_of(ADAPTER)["adapter"], _ADAPTER_IMAGE))
    with prometheus_on(cluster, images) as prometheus, applied(cluster.kubectl, list(_adapter())):
        wait_for(cluster.kubectl.within(PLACE), "prometheus-adapter")
        wait_for_external_metrics(cluster.kubectl)
        yield prometheus


@contextmanager
def applied(kubectl: Kubectl, objects: list[Object], *flags: str) -> Iterator[None]:
    """Apply objects of any namespace, and delete them after the block, the last one first."""
    kubectl = kubectl.within("")
    try:
        kubectl.apply(yaml.safe_dump_all(objects), *flags)
        yield
    finally:
        text = yaml.safe_dump_all(reversed(objects))
        kubectl.run("delete", "--filename=-", "--ignore-not-found", stdin=text, timeout_s=IN_FORCE_S)


def scrape_config() -> Mapping[str, Any]:
    """Return the scrape configuration in the page about Kubernetes."""
    (block,) = re.findall(
        r"```yaml\n(scrape_configs:.*?)```", (MANIFESTS / "README.md").read_text(), re.DOTALL
    )
    found: Mapping[str, Any] = yaml.safe_load(block)
    return found


def wait_for(kubectl: Kubectl, deployment: str) -> None:
    """Wait until all pods of a deployment are ready."""
    kubectl.run(
        "rollout", "status", f"deployment/{deployment}", f"--timeout={IN_FORCE_S:.0f}s", timeout_s=300
    )


def wait_for_external_metrics(kubectl: Kubectl) -> None:
    """Wait until Kubernetes has somebody to ask for the metrics of autoscalers."""
    kubectl.run("wait", "--for=condition=Available", f"apiservice/v1beta1.{_EXTERNAL}")


def _quantity(text: str) -> float:
    return float(text.removesuffix("m")) / 1_000 if text.endswith("m") else float(text)


def _metadata(name: str) -> Object:
    return {"name": name, "namespace": PLACE, "labels": {"app": name}}


def _prometheus() -> Iterator[Object]:
    name = "prometheus"
    settings = {
        "global": {"scrape_interval": "5s", "evaluation_interval": "5s"},
        "rule_files": [f"/etc/prometheus/{RULES.name}"],
        **scrape_config(),
    }
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(name)}
    api = "rbac.authorization.k8s.io"
    watched = {"verbs": ["get", "list", "watch"]}
    yield {
        "apiVersion": f"{api}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [
            {"apiGroups": [""], "resources": ["services", "endpoints", "pods"], **watched},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], **watched},
        ],
    }
    yield {
        "apiVersion": f"{api}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": PLACE}],
    }
    files = {"prometheus.yml": yaml.safe_dump(settings), RULES.name: RULES.read_text()}
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(name), "data": files}
    container = {
        "name": name,
        "image": _PROMETHEUS_IMAGE,
        "imagePullPolicy": "Never",
        "args": ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/data"],
        "readinessProbe": {"httpGet": {"path": "/-/ready", "port": _PORT}, "periodSeconds": 1},
        "volumeMounts": [
            {"name": "settings", "mountPath": "/etc/prometheus"},
            {"name": "data", "mountPath": "/data"},
        ],
    }
    volumes = [{"name": "settings", "configMap": {"name": name}}, {"name": "data", "emptyDir": {}}]
    yield {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(name),
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"serviceAccountName": name, "containers": [container], "volumes": volumes},
            },
        },
    }
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(name),
        "spec": {"selector": {"app": name}, "ports": [{"port": _PORT}]},
    }


def _adapter() -> Iterator[Object]:
    """Yield the objects of the adapter's release with our values, and that which brings it into the API."""
    values = yaml.safe_load((MANIFESTS / "prometheus-adapter.yaml").read_text())
    folder = module_folder(ADAPTER.path, ADAPTER.version) / "deploy" / "manifests"
    rules = {"config.yaml": yaml.safe_dump({"externalRules": values["rules"]["external"]})}
    settings = {"name": "adapter-config", "namespace": PLACE}
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": settings, "data": rules}
    url = f"--prometheus-url={values['prometheus']['url']}:{values['prometheus']['port']}/"
    for name in _ADAPTER_OBJECTS:
        found: Object = yaml.safe_load((folder / f"{name}.yaml").read_text())
        if found["kind"] == "Deployment":
            found["spec"]["replicas"] = 1
            (container,) = found["spec"]["template"]["spec"]["containers"]
            container |= {"image": _ADAPTER_IMAGE, "imagePullPolicy": "Never"}
            kept = [
                each for each in container["args"] if not each.startswith(("--prometheus-url", "--metrics-"))
            ]
            container["args"] = [*kept, url, *_INTERVALS]
        yield found
    service = {"name": "prometheus-adapter", "namespace": PLACE}
    yield {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"v1beta1.{_EXTERNAL}"},
        "spec": {
            "group": _EXTERNAL,
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
            "service": service,
        },
    }
