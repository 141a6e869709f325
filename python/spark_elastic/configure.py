"""Turn the plugin on from Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def configure(builder: SparkSession.Builder, mode: str | None = None) -> SparkSession.Builder:
    """Add the plugin to a session's builder and return it; what is set already is added to, never replaced.

    Call it before the first session of the process: the plugin comes up with the driver, and one that is up
    keeps its mode, with a warning where another is asked for. `mode` is a value of
    ``spark.elastic.schedulerMode``, None for the one that is set or the default.

    Raises ConflictError if the settings that are there do not go with it or the driver is up already without
    it, and JarNotFoundError if the installed Spark is not supported.
    """
    # Loaded here, because the policy process imports this package too and has no use for it.
    from spark_elastic.session import add_plugin

    return add_plugin(builder, mode)
