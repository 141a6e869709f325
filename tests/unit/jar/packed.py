"""Jars like those of the shim's build, for tests without a build."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

START = Path(__file__).parents[3] / "jvm-shim" / "src" / "main" / "resources" / "__main__.py"
VERSION = "1.2.3"


def jar(folder: Path, files: Mapping[str, str]) -> Path:
    """Write a jar that starts the policy process as the shim's jar does, with these additional files."""
    path = folder / "spark-elastic.jar"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(START, "__main__.py")
        archive.writestr("spark-elastic.properties", f"version={VERSION}\nspark=4.2.0\n")
        for name, text in files.items():
            archive.writestr(name, text)
    return path
