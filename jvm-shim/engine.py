"""The policy engine as the jars of the Maven repository carry it: our package and its pinned dependencies.

All of it is pure Python below one folder of the jar, from which Python imports it without unpacking: there is
nothing to clean up, and no folder that others could write to. The price is that each start compiles the
modules, as byte code would fit only one version of Python. Of our own code it is only the package
`spark_elastic`: the tools to run beside the engine are separate packages.

An installed engine of the jar's version runs instead: whoever installed it may have had reasons. The wheel's
jars have no engine: the wheel has it already, and a copy in each would double its size.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from email.message import Message
from email.parser import BytesParser
from pathlib import Path

from attrs import frozen

from spark_elastic_tools.maven import FetchError, locked

CHECKOUT = Path(__file__).parent.parent
REQUIREMENTS = Path(__file__).parent / "engine-requirements.txt"
#: The folder in the jar, which `__main__.py` there knows as well.
FOLDER = "policy-engine"
# Tests and tools that come with third-party packages.
_NOT_NEEDED = ("falcon/bench/", "falcon/cmd/", "falcon/testing/", "py4j/tests/")
# The metadata of a wheel that readers may need: who made it, and its licence.
_SAYS = re.compile(r"[^/]+\.dist-info/(METADATA|LICEN[CS]E.*|NOTICE.*|COPYING.*|licenses/.+)")
# The oldest Python that the engine supports, and a platform for the one package without a pure wheel.
_FOR = ("--python-version", "3.10", "--implementation", "cp", "--platform", "manylinux2014_x86_64")


@frozen
class Package:
    """A package included in the jar."""

    name: str
    version: str
    licence: str
    where: str


def download() -> list[Path]:
    """Return the wheels of engine-requirements.txt, fetched from pip's index if they are not cached.

    Raises FetchError if one cannot be fetched, or has another hash.
    """
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:16]
    with locked("engine") as cache:
        folder = cache / "engine" / wanted
        if not folder.is_dir():
            folder.parent.mkdir(exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix="part-") as part:
                print("fetching what the policy engine needs from pip's index (2 MB)", flush=True)
                _pip(Path(part) / "wheels")
                # Renamed when complete, so that a folder that exists can be trusted.
                (Path(part) / "wheels").rename(folder)
    return sorted(folder.glob("*.whl"))


def _pip(folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--require-hashes", "--only-binary=:all:", *_FOR, "--dest", str(folder)]
    run = subprocess.run([*command, "--requirement", str(REQUIREMENTS)], capture_output=True, text=True)
    if run.returncode != 0:
        raise FetchError(f"cannot fetch what {REQUIREMENTS.name} pins\n{run.stderr.strip()}")


def files(wheels: Iterable[Path], checkout: Path = CHECKOUT) -> dict[str, bytes]:
    """Return the engine's files by their names in the jar."""
    found = _ours(checkout / "python")
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if _is_needed(name):
                    found[f"{FOLDER}/{name}"] = archive.read(name)
    return dict(sorted(found.items()))


def _ours(python: Path) -> dict[str, bytes]:
    package = python / "spark_elastic"
    return {
        f"{FOLDER}/{file.relative_to(python).as_posix()}": file.read_bytes() for file in package.rglob("*.py")
    }


def _is_needed(name: str) -> bool:
    if ".data/" in name or name.startswith(_NOT_NEEDED):
        return False
    # A compiled module would fit only one Python on one platform, and none can be loaded from a jar.
    return name.endswith(".py") or _SAYS.fullmatch(name) is not None


def packages(wheels: Iterable[Path]) -> list[Package]:
    """Return the packages as described by the wheels, sorted by name."""
    found = [_package(wheel) for wheel in wheels]
    return sorted(found, key=lambda package: package.name.lower())


def _package(wheel: Path) -> Package:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        said = BytesParser().parsebytes(archive.read(name), headersonly=True)
    return Package(said["Name"], said["Version"], _licence(said), _where(said))


def _licence(said: Message) -> str:
    classifiers = said.get_all("Classifier") or []
    named = [text.rpartition(" :: ")[2] for text in classifiers if text.startswith("License :: OSI")]
    return said["License-Expression"] or said["License"] or ", ".join(named) or "UNKNOWN"


def _where(said: Message) -> str:
    urls = dict(text.split(", ", 1) for text in said.get_all("Project-URL") or [])
    kinds = (kind for kind in ("Homepage", "Home", "GitHub", "Source code") if kind in urls)
    return said["Home-page"] or next((urls[kind] for kind in kinds), "no address")


def notice(carried: Iterable[Package]) -> str:
    """Return the notice in the jar about the third-party packages in it."""
    rows = [f"  {one.name} {one.version}, {one.licence}, {one.where}" for one in carried]
    return "\n".join(
        [
            "spark-elastic, under the Apache License 2.0 (META-INF/LICENSE).",
            "",
            f"Below {FOLDER}/ there are packages of others, unchanged but without their tests and compiled",
            f"parts. The licence of each is in {FOLDER}/NAME-VERSION.dist-info.",
            "",
            *rows,
            "",
        ]
    )
