"""The schemas of what operators bring to Kubernetes, from their releases, made as strict as `kubectl` is."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import jsonschema
import yaml
from attrs import frozen

from integration.go_modules import module_folder

Schema = dict[str, Any]


@frozen
class Source:
    """A file of a released Go module."""

    module: str
    version: str
    file: str

    def read(self) -> str:
        """Return its text. Raises Unavailable if it cannot be fetched."""
        return (module_folder(self.module, self.version) / self.file).read_text(encoding="utf-8")


KEDA = Source("github.com/kedacore/keda/v2", "v2.21.0", "config/crd/bases/keda.sh_scaledobjects.yaml")
KUBEFLOW = Source(
    "github.com/kubeflow/spark-operator/v2",
    "v2.4.0",
    "config/crd/bases/sparkoperator.k8s.io_sparkapplications.yaml",
)


@cache
def schema(source: Source, version: str) -> Schema:
    """Return the JSON schema of a version of a resource, with unknown fields refused."""
    definition = yaml.safe_load(source.read())
    (found,) = (each for each in definition["spec"]["versions"] if each["name"] == version)
    strict: Schema = _strict(found["schema"]["openAPIV3Schema"])
    # What every object has; the API server knows it.
    strict["properties"]["metadata"] = {"type": "object"}
    return strict


def check(found: Mapping[str, Any], source: Source) -> None:
    """Raise jsonschema.ValidationError for an object that Kubernetes would refuse, Unavailable without Go."""
    jsonschema.validate(found, schema(source, found["apiVersion"].rpartition("/")[2]))


def _strict(given: Any) -> Any:
    """Turn a structural schema of Kubernetes into a JSON schema."""
    if not isinstance(given, dict):
        return given
    made = {key: value for key, value in given.items() if not key.startswith("x-kubernetes-")}
    if given.get("x-kubernetes-int-or-string"):
        made["type"] = ["integer", "string"]
        made.pop("anyOf", None)
    # Go's kinds of numbers, and times, are no formats of JSON schema.
    made.pop("format", None)
    for key in ("items", "not"):
        if key in made:
            made[key] = _strict(made[key])
    if isinstance(made.get("additionalProperties"), dict):
        made["additionalProperties"] = _strict(made["additionalProperties"])
    if "properties" in made:
        made["properties"] = {name: _strict(each) for name, each in made["properties"].items()}
        if not given.get("x-kubernetes-preserve-unknown-fields"):
            made.setdefault("additionalProperties", False)
    if given.get("nullable") and isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
    return made
