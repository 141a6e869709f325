"""Find the shim's jar: the Scala half of spark-elastic, shipped inside the Python package."""

from __future__ import annotations

import re
from importlib import metadata, resources
from pathlib import Path

from spark_elastic import __version__

_NAME = re.compile(r"spark-elastic_(?P<spark>\d+\.\d+)_(?P<scala>\d+\.\d+)-(?P<version>.+)\.jar")


class JarNotFoundError(LookupError):
    """No jar fits; the message says what was found, what is allowed and what to type."""


def jar_path(spark_version: str | None = None) -> Path:
    """Return the jar for a Spark version such as "4.2.0"; by default for the installed pyspark.

    Raises JarNotFoundError if this installation has none for it.
    """
    return find_jar(Path(str(resources.files("spark_elastic"))) / "jars", spark_version or _installed_spark())


def find_jar(folder: Path, spark_version: str) -> Path:
    """Return the jar in a folder for a Spark version; raises JarNotFoundError if there is none."""
    names = [(_NAME.fullmatch(path.name), path) for path in sorted(folder.glob("*.jar"))]
    ours = {name["spark"]: path for name, path in names if name and name["version"] == __version__}
    minor = ".".join(spark_version.split(".")[:2])
    if minor in ours:
        return ours[minor]
    if ours:
        newest = max(ours, key=lambda known: tuple(map(int, known.split("."))))
        raise JarNotFoundError(
            f"Spark {spark_version} is not supported by spark-elastic {__version__}, which has jars for Spark"
            f" {', '.join(ours)}: type `pip install 'pyspark=={newest}.*'`, or use a newer spark-elastic"
        )
    others = ", ".join(path.name for _, path in names) or "no jar"
    raise JarNotFoundError(
        f"{folder} has {others}, but spark-elastic {__version__} needs its own: type `make jar` in a"
        " checkout, or `pip install --force-reinstall spark-elastic`"
    )


def _installed_spark() -> str:
    try:
        return metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        raise JarNotFoundError(
            "pyspark is not installed, so the Spark version is not known: type `pip install pyspark`"
        ) from None
