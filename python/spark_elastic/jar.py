"""Find the shim's jar: the Scala half of spark-elastic, shipped inside the Python package."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from spark_elastic.installation import Spark, installed_pyspark
from spark_elastic.version import __version__

_NAME = re.compile(r"spark-elastic_(?P<spark>\d+\.\d+)_(?P<scala>\d+\.\d+)-(?P<version>.+)\.jar")


class JarNotFoundError(LookupError):
    """No jar matches. The message says what was found, what is allowed and what to type."""


def jar_path(spark: Spark | None = None) -> Path:
    """Return the jar for `spark`, by default for the installed pyspark.

    Raises JarNotFoundError if this installation has no jar for it.
    """
    spark = spark or installed_pyspark()
    if spark is None:
        raise JarNotFoundError(
            "pyspark is not installed, so the Spark version is not known: type `pip install pyspark`"
        )
    return find_jar(Path(str(resources.files("spark_elastic"))) / "jars", spark)


def find_jar(folder: Path, spark: Spark) -> Path:
    """Return the jar in `folder` for `spark`. Raises JarNotFoundError if there is none.

    An unknown Scala version counts as the earliest one, which is that of PySpark as pip installs it.
    """
    names = [(_NAME.fullmatch(path.name), path) for path in sorted(folder.glob("*.jar"))]
    ours = {(m["spark"], m["scala"]): path for m, path in names if m and m["version"] == __version__}
    for (minor, scala), path in ours.items():
        if minor == spark.minor and spark.scala in (None, scala):
            return path
    if ours:
        newest = max((minor for minor, _ in ours), key=lambda known: tuple(map(int, known.split("."))))
        raise JarNotFoundError(
            f"{spark} is not supported by spark-elastic {__version__}, which has jars for Spark"
            f" {', '.join(map('_'.join, ours))}: type `pip install 'pyspark=={newest}.*'`, or use a newer"
            " spark-elastic"
        )
    others = ", ".join(path.name for _, path in names) or "no jar"
    raise JarNotFoundError(
        f"{folder} has {others}, but spark-elastic {__version__} needs its own: type `make jar` in a"
        " checkout, or `pip install --force-reinstall spark-elastic`"
    )
