"""The files that a script installs, and their checksums."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from attrs import field, frozen

# As `pip download` and the build of the shim name them.
_WHEEL = re.compile(r"(?P<name>[\w.]+)-(?P<version>[\w.!+]+)(-\d\w*)?-[\w.]+-[\w.]+-[\w.]+\.whl")
_JAR = re.compile(r"spark-elastic_\d+\.\d+_\d+\.\d+-(?P<version>.+)\.jar")
_OURS = "spark-elastic"


class FilesError(ValueError):
    """A folder does not have what a script needs; the message says what was found, and what to type."""


@frozen
class Files:
    """What is to be installed: SHA-256 checksums by file name, and pip's lines for the wheels among them."""

    checksums: Mapping[str, str] = field(factory=dict)
    requirements: tuple[str, ...] = ()


def from_index(version: str) -> Files:
    """Return what pip is told if nobody has named files: this version, and what it asks for, unchecked."""
    return Files(requirements=(f"{_OURS}=={version}",))


def read_files(folder: Path, version: str) -> Files:
    """Return the wheels and the jars of ours in a folder, each with its checksum.

    Several wheels of one version are alternatives, for other platforms. Raises FilesError if the folder has
    no wheel of this version of ours, two versions of one package, or a file of ours of another version.
    """
    paths = sorted(path for path in folder.glob("*") if path.suffix in (".whl", ".jar"))
    wheels: dict[str, dict[str, list[Path]]] = {}
    jars = []
    for path in paths:
        wheel, jar = _WHEEL.fullmatch(path.name), _JAR.fullmatch(path.name)
        if wheel is not None:
            wheels.setdefault(_normal(wheel["name"]), {}).setdefault(wheel["version"], []).append(path)
        elif jar is not None:
            _check_version(path, jar["version"], version)
            jars.append(path)
        else:
            raise FilesError(f"{path} is neither a wheel nor a jar of {_OURS}: remove it")
    _check(folder, wheels, version)
    checksums = {path.name: _sha256(path) for path in paths}
    return Files(checksums, tuple(_requirements(wheels, checksums)))


def _check(folder: Path, wheels: Mapping[str, Mapping[str, list[Path]]], version: str) -> None:
    if _OURS not in wheels:
        raise FilesError(
            f"{folder} has no wheel of {_OURS}: type `pip download --only-binary=:all: --python-version 3.11 "
            f"--platform manylinux2014_x86_64 --dest {folder} {_OURS}=={version}`, with the Python and the "
            "platform of the nodes"
        )
    for found, paths in wheels[_OURS].items():
        _check_version(paths[0], found, version)
    for name, versions in wheels.items():
        if len(versions) > 1:
            raise FilesError(f"{folder} has {name} {' and '.join(versions)}: keep one of them")


def _check_version(path: Path, found: str, version: str) -> None:
    if found != version:
        raise FilesError(
            f"{path} is of version {found}, and this is {_OURS} {version}: take the files of {version}, or "
            f"type `pip install {_OURS}=={found}` and make the script with that"
        )


def _requirements(
    wheels: Mapping[str, Mapping[str, list[Path]]], checksums: Mapping[str, str]
) -> Iterable[str]:
    for name, versions in sorted(wheels.items()):
        for version, paths in versions.items():
            hashes = " ".join(f"--hash=sha256:{checksums[path.name]}" for path in paths)
            yield f"{name}=={version} {hashes}"


def _normal(name: str) -> str:
    """Return a package's name as the index has it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while part := file.read(1 << 20):
            digest.update(part)
        return digest.hexdigest()
