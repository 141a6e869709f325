"""The parts of Kubernetes: programs built from their released sources, once, and packages of Debian."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import frozen

from spark_elastic_tools.maven import cache_dir, locked

KUBERNETES = "1.34.4"
_STAGED = re.compile(r"^\s*(?:replace\s+)?(\S+) => \./staging/", re.MULTILINE)
_BUILD_S = 3600.0
# A program, and Debian's package that has it. The image of the nodes' pods is made with the last two.
_PACKAGES = {
    "containerd": "containerd",
    "runc": "runc",
    "ip": "iproute2",
    "iptables": "iptables",
    "nsenter": "util-linux",
    "openssl": "openssl",
    "tini": "tini",
    "buildah": "buildah",
    "debootstrap": "debootstrap",
}
CNI = Path("/usr/lib/cni")
_GO = (1, 24)


class Unavailable(Exception):
    """This machine lacks something that Kubernetes needs; the message says what, and what to type."""


@frozen
class Module:
    """A Go module with programs: each by its name, and the package that it is built from."""

    path: str
    version: str
    programs: Mapping[str, str]
    # Variables of the linked programs.
    variables: Mapping[str, str] = {}


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
    if all(_built(module).is_dir() for module in MODULES):
        return None
    return _missing_go()


def unbuilt() -> str | None:
    """Return why Kubernetes cannot be started at once, with what to type; None: it can."""
    if missing() is None and not all(_built(module).is_dir() for module in MODULES):
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
    with locked("kubernetes"):
        for module in MODULES:
            if not _built(module).is_dir():
                _build(module)
            found |= {name: _built(module) / name for name in module.programs}
        found["pause"] = _pause()
    return found


def module_folder(path: str, version: str) -> Path:
    """Return the folder of a Go module's sources, fetching it if it is missing. Raises Unavailable."""
    reason = _missing_go()
    if reason is not None:
        raise Unavailable(reason)
    with tempfile.TemporaryDirectory() as scratch:
        said = _go(["mod", "download", "-json", f"{path}@{version}"], Path(scratch))
    return Path(json.loads(said)["Dir"])


def _built(module: Module) -> Path:
    return cache_dir() / "kubernetes" / f"{module.path.replace('/', '-')}-{module.version}"


def _build(module: Module) -> None:
    names = ", ".join(module.programs)
    print(
        f"spark-elastic: building {names} {module.version}; once, some minutes", file=sys.stderr, flush=True
    )
    target = _built(module)
    target.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="part-") as part:
        work = Path(part)
        (work / "go.mod").write_text(_requirement(module))
        flags = ["-s", "-w", *(f"-X {name}={value}" for name, value in module.variables.items())]
        built = work / "built"
        built.mkdir()
        for name, package in module.programs.items():
            options = ["-mod=mod", "-trimpath", f"-ldflags={' '.join(flags)}", "-o", str(built / name)]
            _go(["build", *options, package], work)
        # Renamed when complete, so that a folder that exists is always complete.
        built.rename(target)


def _requirement(module: Module) -> str:
    """Return the go.mod of a module that needs this one.

    Kubernetes names the modules that it is published with by their place in its repository; they have the
    same version, beginning with 0.
    """
    folder = module_folder(module.path, module.version)
    staged = _STAGED.findall((folder / "go.mod").read_text())
    version = re.sub(r"^v1\.", "v0.", module.version)
    lines = ["module parts", f"go {'.'.join(map(str, _GO))}", f"require {module.path} {module.version}"]
    return "\n".join([*lines, *(f"replace {name} => {name} {version}" for name in staged), ""])


def _pause() -> Path:
    """Return the program of a pod that only holds its namespaces."""
    target = cache_dir() / "kubernetes" / "pause"
    if not target.exists() or target.stat().st_mtime < _PAUSE.stat().st_mtime:
        _go(["build", "-trimpath", "-ldflags=-s -w", "-o", str(target), str(_PAUSE)], _PAUSE.parent)
    return target


def _missing_go() -> str | None:
    needed = ".".join(map(str, _GO))
    if not shutil.which("go"):
        return f"missing: Go {needed} or later (Debian 13: apt-get install golang-go)"
    said = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=True).stdout
    found = tuple(map(int, re.findall(r"\d+", said)[:2]))
    # Since 1.21 Go fetches the toolchain that a module asks for.
    return None if found >= (1, 21) else f"missing: Go {needed} or later instead of {said.strip()}"


def _go(arguments: Sequence[str], folder: Path) -> str:
    environment = {**os.environ, "GOTOOLCHAIN": "auto", "CGO_ENABLED": "0", "GOWORK": "off"}
    done = subprocess.run(
        ["go", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_BUILD_S,
        check=False,
    )
    if done.returncode != 0:
        raise Unavailable(f"go {' '.join(arguments)}: {(done.stderr or done.stdout)[-3000:]}")
    return done.stdout
