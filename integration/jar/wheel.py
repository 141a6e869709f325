"""The wheel, built as `make wheel` does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from build_jar import CHECKOUT
from integration.jar.each_jar import jar_for
from spark_versions import supported

_BUILD_S = 840.0


def build_wheel(folder: Path) -> Path:
    """Return the wheel in a folder; jars that are not cached are compiled."""
    for row in supported():
        jar_for(row)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=CHECKOUT, check=True, timeout=_BUILD_S)
    (built,) = folder.glob("*.whl")
    return built
