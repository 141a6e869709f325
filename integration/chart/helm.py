"""Run Helm on the project's chart."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from integration.commands import output_of
from integration.go_modules import Module, programs_of

# The cluster that it assumes where none is asked: as in its release, the Kubernetes that it is built with.
_KUBERNETES = {"k8sVersionMajor": "1", "k8sVersionMinor": "37"}
HELM = Module(
    "helm.sh/helm/v3",
    "v3.22.0",
    {"helm": "helm.sh/helm/v3/cmd/helm"},
    {
        f"helm.sh/helm/v3/pkg/{package}.{name}": value
        for package in ("chartutil", "lint/rules")
        for name, value in _KUBERNETES.items()
    },
)
FOLDER = Path(__file__).parents[2] / "conf" / "kubernetes"
CHART = FOLDER / "chart"
RELEASE, NAMESPACE = "orders", "spark"
_HELM_S = 600.0


class HelmError(Exception):
    """Helm refused what it was given; the message is what it said."""


def helm(*arguments: str, env: Mapping[str, str] | None = None) -> str:
    """Return what Helm prints. Raises HelmError, or Unavailable if it cannot be built."""
    return output_of([str(programs_of(HELM)["helm"]), *arguments], HelmError, timeout_s=_HELM_S, env=env)


def render(example: Path, *options: str) -> str:
    """Return the objects of an example, as YAML."""
    chosen = ("--namespace", NAMESPACE, "--skip-tests", "--values", str(example))
    return helm("template", RELEASE, str(CHART), *chosen, *options)
