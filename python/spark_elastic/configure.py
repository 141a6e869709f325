"""Enable the plugin from Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def configure(builder: SparkSession.Builder, mode: str | None = None) -> SparkSession.Builder:
    """Add the plugin to a session builder and return it; existing settings are extended, never replaced.

    Call it before the process creates its first session, because the plugin starts with the driver. A plugin
    that is already running keeps its mode; requesting another one only issues a warning. `mode` is a value of
    ``spark.elastic.schedulerMode``; None keeps the configured mode, or the default.

    Raises ConflictError if the existing settings conflict with the plugin, or if the driver is already
    running without it. Raises JarNotFoundError if the installed Spark is not supported.
    """
    # Imported here because the policy process imports this package too and does not need it.
    from spark_elastic.session import add_plugin

    return add_plugin(builder, mode)
