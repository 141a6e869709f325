"""Delta Lake, where a release fits the installed Spark."""

from __future__ import annotations

from pathlib import Path

from integration.spark_minor import SPARK_MINOR
from spark_elastic_tools.maven import fetch

_VERSION = "4.4.0"
_MODULES = ("delta-spark_4.2_2.13", "delta-storage", "delta-kernel-api", "delta-kernel-defaults")
# Delta has a separate artifact for each Spark.
FITS = SPARK_MINOR == (4, 2)
# The settings with which an application reads and writes its tables.
CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # By default, a log of a few entries is read by 50 tasks.
    "spark.databricks.delta.snapshotPartitions": "2",
}


def jars() -> list[Path]:
    """Return its jars, from Maven Central or from the cache of downloads. Raises FetchError."""
    return fetch(*(f"io.delta:{module}:{_VERSION}" for module in _MODULES), transitive=False)
