"""Results of whole runs: a folder for each release, a file for each benchmark."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from spark_elastic.installation import installed_pyspark
from spark_elastic.version import __version__

FOLDER = Path(__file__).parent / "results"


def file_of(name: str) -> Path:
    """Return the file of a benchmark's result in this release."""
    return FOLDER / __version__ / f"{name}.json"


def keep(name: str, result: Mapping[str, Any]) -> Path:
    """Write a benchmark's result as results/VERSION/NAME.json; return the file.

    It begins with the versions and the machine that the figures hold for.
    """
    measured_with = {
        "spark_elastic": __version__,
        "spark": getattr(installed_pyspark(), "version", None),
        "processors": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
    }
    file = file_of(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"measured_with": measured_with, **result}, indent=1) + "\n", encoding="utf-8")
    return file
