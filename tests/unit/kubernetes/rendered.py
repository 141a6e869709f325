"""The manifests of conf/kubernetes, as rendered from the chart, and what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from attrs import frozen

FOLDER = Path(__file__).parents[3] / "conf" / "kubernetes"
NAMES = tuple(sorted(file.stem for file in (FOLDER / "manifests").glob("*.yaml")))
REACTIVE = tuple(name for name in NAMES if name.startswith("reactive"))
ADAPTIVE = tuple(name for name in NAMES if name.startswith("adaptive"))
# Kinds that an operator brings to Kubernetes; integration/chart checks their form.
BROUGHT = ("ScaledObject", "ServiceMonitor", "SparkApplication", "SparkCluster")
Object = dict[str, Any]


@frozen
class Pod:
    """A pod that an object makes: its component, labels, and specification."""

    labels: dict[str, str]
    spec: Object

    @property
    def component(self) -> str:
        return self.labels["app.kubernetes.io/component"]

    @property
    def container(self) -> Object:
        (found,) = self.spec["containers"]
        assert isinstance(found, dict)
        return found

    @property
    def environment(self) -> dict[str, str]:
        return {each["name"]: each["value"] for each in self.container["env"] if "value" in each}

    def matches(self, selector: dict[str, str]) -> bool:
        return bool(selector) and selector.items() <= self.labels.items()


@frozen
class Manifest:
    """The objects of one file."""

    objects: tuple[Object, ...]

    def of(self, kind: str) -> list[Object]:
        return [each for each in self.objects if each["kind"] == kind]

    def one(self, kind: str, component: str = "") -> Object:
        (found,) = (
            each
            for each in self.of(kind)
            if not component or each["metadata"]["name"].endswith(f"-{component}")
        )
        return found

    def names(self, kind: str) -> set[str]:
        return {each["metadata"]["name"] for each in self.of(kind)}

    def pods(self) -> list[Pod]:
        """Return the pods of all objects, those of executors that the driver starts included."""
        return [Pod(each["metadata"]["labels"], each["spec"]) for each in self._templates()]

    def pod(self, component: str) -> Pod:
        (found,) = (pod for pod in self.pods() if pod.component == component)
        return found

    def _templates(self) -> Iterator[Object]:
        for each in self.objects:
            spec = each.get("spec", {})
            if each["kind"] in ("Deployment", "Job"):
                yield spec["template"]
            elif each["kind"] == "SparkCluster":
                yield spec["masterSpec"]["statefulSetSpec"]["template"]
                yield spec["workerSpec"]["statefulSetSpec"]["template"]
            elif each["kind"] == "SparkApplication" and "driverSpec" in spec:
                yield spec["driverSpec"]["podTemplateSpec"]
                yield spec["executorSpec"]["podTemplateSpec"]
            elif each["kind"] == "SparkApplication":
                yield spec["driver"]["template"]
                yield spec["executor"]["template"]
            elif each["kind"] == "ConfigMap" and "executor-pod.yaml" in each["data"]:
                yield yaml.safe_load(each["data"]["executor-pod.yaml"])

    def conf(self) -> dict[str, str]:
        """Return Spark's settings of the driver, in whatever form the manifest has them."""
        for each in self.of("SparkApplication"):
            return {**each["spec"]["sparkConf"], **_fields(each["spec"])}
        args = self.pod("driver").container["args"]
        pairs = (args[index + 1] for index, arg in enumerate(args) if arg == "--conf")
        return dict(pair.split("=", 1) for pair in pairs)


def _fields(spec: Object) -> dict[str, str]:
    """Return the settings that kubeflow's operator has fields for."""
    if "driver" not in spec:
        return {}
    found = {"spark.kubernetes.container.image": spec["image"]}
    found["spark.kubernetes.container.image.pullPolicy"] = spec["imagePullPolicy"]
    found["spark.kubernetes.authenticate.driver.serviceAccountName"] = spec["driver"]["serviceAccount"]
    for role in ("driver", "executor"):
        for name in ("cores", "memory", "memoryOverhead"):
            found[f"spark.{role}.{name}"] = str(spec[role][name])
    found["spark.executor.instances"] = str(spec["executor"]["instances"])
    return found


def manifest(name: str) -> Manifest:
    """Read a manifest by the name of its file, without .yaml."""
    text = (FOLDER / "manifests" / f"{name}.yaml").read_text(encoding="utf-8")
    return parse(text)


def parse(text: str) -> Manifest:
    return Manifest(tuple(each for each in yaml.safe_load_all(text) if each))
