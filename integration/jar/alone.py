"""What stands for a machine on which nothing of ours is installed."""

from __future__ import annotations

import venv
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import maven_repository
from build_jar import installed_row, project_version


def repository(folder: Path) -> Path:
    """Write a Maven repository for the Spark that is installed; return the jar in it."""
    (jar,) = maven_repository.write(folder, [installed_row()], project_version())
    return jar


def bare_python(folder: Path, packages: Iterable[str] = ()) -> str:
    """Make a virtual environment with these packages, as they are installed here, and no others."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for package in packages:
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        (site / package).symlink_to(Path(spec.origin).parent)
    return str(folder / "bin" / "python")
