"""Build programs from the sources of released Go modules, once, into the cache.

No release of these programs is in a package registry, but their modules are: `go` fetches and verifies them.
"""

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
from typing import Any

from attrs import field, frozen

from integration.commands import output_of
from spark_elastic_tools.maven import cache_dir, locked

_GO = (1, 24)
_BUILD_S = 3600.0


class Unavailable(Exception):
    """This machine lacks something that a test needs; the message says what, and what to type."""


@frozen
class Module:
    """A released module with programs: each by its name, and the package that it is built from.

    `tags` leave out what no test needs.
    """

    path: str
    version: str
    programs: Mapping[str, str] = field(factory=dict)
    # Variables of the linked programs.
    variables: Mapping[str, str] = field(factory=dict)
    tags: Sequence[str] = ()


def missing_go() -> str | None:
    """Return what to install to build programs; None: Go is there."""
    needed = ".".join(map(str, _GO))
    if not shutil.which("go"):
        return f"missing: Go {needed} or later (Debian 13: apt-get install golang-go)"
    said = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=True).stdout
    found = tuple(map(int, re.findall(r"\d+", said)[:2]))
    # Since 1.21 Go fetches the toolchain that a module asks for.
    return None if found >= (1, 21) else f"missing: Go {needed} or later instead of {said.strip()}"


def is_built(module: Module) -> bool:
    """Return whether the cache has a module's programs, so that they can be had without Go."""
    return _built(module).is_dir()


def programs_of(module: Module) -> dict[str, Path]:
    """Return the path of each program of a module; build them if the cache lacks them, which takes minutes.

    Raises Unavailable.
    """
    # Who builds holds the lock for minutes, and what is there is complete.
    if not is_built(module):
        with locked("go"):
            if not is_built(module):
                _build(module)
    return {name: _built(module) / name for name in module.programs}


def module_folder(path: str, version: str) -> Path:
    """Return the folder of a module's sources, in Go's own cache; fetch it if it is missing.

    Raises Unavailable.
    """
    return Path(_download(path, version)["Dir"])


def _download(path: str, version: str) -> dict[str, Any]:
    reason = missing_go()
    if reason is not None:
        raise Unavailable(reason)
    with tempfile.TemporaryDirectory() as scratch:  # no go.mod of a checkout may have a say
        found: dict[str, Any] = json.loads(
            go(["mod", "download", "-json", f"{path}@{version}"], Path(scratch))
        )
    return found


def _built(module: Module) -> Path:
    return cache_dir() / "go" / f"{module.path.replace('/', '-')}-{module.version}"


def _build(module: Module) -> None:
    found = _download(module.path, module.version)
    told = f"building {', '.join(module.programs)} {module.version}; once, some minutes"
    print(f"spark-elastic: {told}", file=sys.stderr, flush=True)
    target = _built(module)
    target.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="part-") as part:
        work, built = Path(part), Path(part, "built")
        built.mkdir()
        _require(module, found, work)
        flags = ["-s", "-w", *(f"-X {name}={value}" for name, value in module.variables.items())]
        for name, package in module.programs.items():
            options = [
                "-mod=mod",
                "-trimpath",
                f"-ldflags={' '.join(flags)}",
                f"-tags={','.join(module.tags)}",
            ]
            go(["build", *options, "-o", str(built / name), package], work)
        # Renamed when complete, so that a folder that exists is always complete.
        built.rename(target)


def _require(module: Module, found: Mapping[str, Any], work: Path) -> None:
    """Make a module that needs this one, as `go install` refuses those whose go.mod replaces others.

    It has the versions of the release, since it begins as its go.mod. Kubernetes names the modules that it is
    published with by their place in its repository; they have the same version, beginning with 0.
    """
    shutil.copyfile(found["GoMod"], work / "go.mod")
    sums = Path(found["Dir"], "go.sum")
    if sums.is_file():
        shutil.copyfile(sums, work / "go.sum")
    replaced = json.loads(go(["mod", "edit", "-json"], work)).get("Replace") or []
    beside = [each["Old"]["Path"] for each in replaced if not each["New"].get("Version")]
    version = re.sub(r"^v1\.", "v0.", module.version)
    edits = [f"-replace={name}={name}@{version}" for name in beside]
    go(["mod", "edit", "-module=parts", f"-require={module.path}@{module.version}", *edits], work)


def go(arguments: list[str], folder: Path) -> str:
    """Run a command of Go in a folder and return what it prints. Raises Unavailable if it fails."""
    # Behind whatever else runs on the machine, and untouched by what else is set for Go.
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "auto", "GOFLAGS": "", "GOWORK": "off"}
    command = ["nice", "-n", "19", "go", *arguments]
    return output_of(command, Unavailable, timeout_s=_BUILD_S, env=environment, folder=folder)
