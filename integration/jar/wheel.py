"""The wheel, built as `make wheel` does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from build_jar import CHECKOUT
from integration.jar.each_jar import jar_for
from spark_versions import SparkVersion, supported

_BUILD_S = 840.0


def build_wheel(folder: Path, only: SparkVersion | None = None) -> Path:
    """Return the wheel in a folder, with all jars or the one for a Spark; those not cached are compiled."""
    for row in supported() if only is None else (only,):
        jar_for(row)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    chosen = {} if only is None else {"SPARK_ELASTIC_ONLY": only.built_for}
    environment = {**os.environ, **chosen}
    subprocess.run(command, cwd=CHECKOUT, env=environment, check=True, timeout=_BUILD_S)
    (built,) = folder.glob("*.whl")
    return built
