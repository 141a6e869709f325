"""A machine without any of our packages."""

from __future__ import annotations

import venv
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import maven_repository
from build_jar import installed_row, project_version


def repository(folder: Path) -> Path:
    """Write a Maven repository for the installed Spark; return the jar in it."""
    (jar,) = maven_repository.write(folder, [installed_row()], project_version())
    return jar


def bare_python(folder: Path, packages: Iterable[str] = ()) -> str:
    """Make a virtual environment with only these packages, in the versions that are installed here."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for package in packages:
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        (site / package).symlink_to(Path(spec.origin).parent)
    return str(folder / "bin" / "python")
