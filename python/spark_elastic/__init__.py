"""Elastic scaling for Apache Spark: queries use the executors that are available."""

from spark_elastic.configure import configure, report
from spark_elastic.version import __version__

__all__ = ["__version__", "configure", "report"]
