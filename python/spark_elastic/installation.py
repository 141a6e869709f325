"""Find the installed Spark, its version and its folder."""

from __future__ import annotations

import os
import re
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from attrs import frozen


@frozen
class Spark:
    """A Spark release: its version such as "4.2.0", and its Scala version such as "2.13", None if unknown."""

    version: str
    scala: str | None = None

    @property
    def minor(self) -> str:
        """The major and minor version, such as "4.2"."""
        return ".".join(self.version.split(".")[:2])

    def __str__(self) -> str:
        return f"Spark {self.version}" + (f" with Scala {self.scala}" if self.scala else "")


def spark_home() -> Path | None:
    """Return Spark's folder: SPARK_HOME if it is set, else that of the installed pyspark, else None."""
    home = os.environ.get("SPARK_HOME")
    return Path(home) if home else pyspark_home()


def pyspark_home() -> Path | None:
    """Return the folder of the installed pyspark, or None if it is not installed."""
    spec = find_spec("pyspark")
    places = spec.submodule_search_locations if spec is not None else None
    return Path(next(iter(places))) if places else None


def installed_spark() -> Spark | None:
    """Return the Spark in `spark_home`, or None if there is none."""
    if not os.environ.get("SPARK_HOME"):
        return installed_pyspark()
    return spark_in(Path(os.environ["SPARK_HOME"]))


def installed_pyspark() -> Spark | None:
    """Return the Spark of the pyspark that Python finds, or None if there is none."""
    home = pyspark_home()
    found = spark_in(home) if home is not None else None
    if found is not None:
        return found
    # A pyspark built without its jars uses those of another installation of the same version.
    try:
        return Spark(metadata.version("pyspark"))
    except metadata.PackageNotFoundError:
        return None


def spark_in(home: Path) -> Spark | None:
    """Return the Spark with its jars in `home`, or None if no file name gives the version."""
    for jar in home.glob("jars/spark-core_*.jar"):
        match = re.fullmatch(r"spark-core_([\d.]+)-(.+)\.jar", jar.name)
        if match is not None:
            return Spark(match[2], match[1])
    return None
