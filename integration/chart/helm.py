"""Run Helm on the project's chart."""

from __future__ import annotations

import subprocess
from pathlib import Path

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


class HelmError(Exception):
    """Helm refused what it was given; the message is what it said."""


def helm(*arguments: str) -> str:
    """Return what Helm prints. Raises HelmError, or Unavailable if it cannot be built."""
    program = programs_of(HELM)["helm"]
    run = subprocess.run([str(program), *arguments], capture_output=True, text=True)
    if run.returncode != 0:
        raise HelmError(run.stderr)
    return run.stdout


def render(example: Path, *options: str) -> str:
    """Return the objects of an example, as YAML."""
    chosen = ("--namespace", NAMESPACE, "--skip-tests", "--values", str(example))
    return helm("template", RELEASE, str(CHART), *chosen, *options)
