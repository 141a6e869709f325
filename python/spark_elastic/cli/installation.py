"""The Spark that the command line talks about."""

from __future__ import annotations

import os
import re
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path


def spark_home() -> Path | None:
    """Return Spark's folder: SPARK_HOME if it is set, else that of the installed pyspark, else None."""
    home = os.environ.get("SPARK_HOME")
    if home:
        return Path(home)
    spec = find_spec("pyspark")
    places = spec.submodule_search_locations if spec is not None else None
    return Path(next(iter(places))) if places else None


def spark_version() -> str | None:
    """Return the version of the Spark in `spark_home`, None if there is none."""
    home = spark_home()
    if home is None:
        return None
    for jar in home.glob("jars/spark-core_*.jar"):
        match = re.fullmatch(r"spark-core_[\d.]+-(.+)\.jar", jar.name)
        if match is not None:
            return match[1]
    # A pyspark that was built without its jars runs with those of another place, of the same version.
    try:
        return None if "SPARK_HOME" in os.environ else metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return None
