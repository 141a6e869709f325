"""The parts of Kubernetes: programs built from their released sources, once, and packages of Debian."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from integration.go_modules import Module, Unavailable, go, is_built, missing_go, programs_of
from spark_elastic_tools.maven import cache_dir, locked

KUBERNETES = "1.34.4"
# A program, and Debian's package that has it. The image of the nodes' pods is made with the last two.
_PACKAGES = {
    "containerd": "containerd",
    "runc": "runc",
    "ip": "iproute2",
    "iptables": "iptables",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "openssl": "openssl",
    "tini": "tini",
    "buildah": "buildah",
    "debootstrap": "debootstrap",
}
CNI = Path("/usr/lib/cni")
_COMPONENTS = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "kubelet",
    "kubectl",
)
_VERSION = "k8s.io/component-base/version"
MODULES = (
    Module(
        "k8s.io/kubernetes",
        f"v{KUBERNETES}",
        {name: f"k8s.io/kubernetes/cmd/{name}" for name in _COMPONENTS},
        {
            f"{_VERSION}.gitVersion": f"v{KUBERNETES}",
            f"{_VERSION}.gitMajor": KUBERNETES.split(".")[0],
            f"{_VERSION}.gitMinor": KUBERNETES.split(".")[1],
        },
    ),
    Module("go.etcd.io/etcd/server/v3", "v3.6.13", {"etcd": "go.etcd.io/etcd/server/v3"}),
    Module("github.com/coredns/coredns", "v1.12.4", {"coredns": "github.com/coredns/coredns"}),
)
_PAUSE = Path(__file__).with_name("image") / "pause.go"


def missing() -> str | None:
    """Return what this machine lacks to run Kubernetes and what to type; None: it can."""
    if sys.platform != "linux":
        return "containers need Linux"
    if os.geteuid() != 0:
        return "network namespaces and mounts need root"
    packages = [package for program, package in _PACKAGES.items() if not shutil.which(program)]
    if not (CNI / "bridge").exists():
        packages.append("containernetworking-plugins")
    if packages:
        return f"missing: apt-get install --no-install-recommends {' '.join(packages)}"
    return None if _all_built() else missing_go()


def unbuilt() -> str | None:
    """Return why Kubernetes cannot be started at once, with what to type; None: it can."""
    if missing() is None and not _all_built():
        return "Kubernetes has not been built yet: make test-kubernetes does it"
    return missing()


def programs() -> dict[str, Path]:
    """Return the path of each program, building those that are missing, which takes ten minutes or more.

    Raises Unavailable.
    """
    reason = missing()
    if reason is not None:
        raise Unavailable(reason)
    found: dict[str, Path] = {}
    for module in MODULES:
        found |= programs_of(module)
    with locked("kubernetes"):
        found["pause"] = _pause()
    return found


def _all_built() -> bool:
    return all(is_built(module) for module in MODULES)


def _pause() -> Path:
    """Return the program of a pod that only holds its namespaces."""
    target = cache_dir() / "kubernetes" / "pause"
    if not target.exists() or target.stat().st_mtime < _PAUSE.stat().st_mtime:
        go(["build", "-trimpath", "-ldflags=-s -w", "-o", str(target), str(_PAUSE)], _PAUSE.parent)
    return target
