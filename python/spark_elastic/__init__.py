"""Elastic scaling for Apache Spark: queries use the executors that are there."""

from spark_elastic.configure import configure

__all__ = ["__version__", "configure"]

# The one version number: build.sbt and the wheel read this line.
__version__ = "0.1.0"
