"""Enable the plugin from Python, and see what it does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_elastic_tools.report import Report


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


def report(spark: SparkSession, headers: Mapping[str, str] | None = None) -> Report:
    """Return what the plugin has done in this session's application: print it, or let a notebook show it.

    It asks the driver's Spark UI, with these `headers` if that wants a login. Raises
    `spark_elastic_tools.client.Failure`, whose text says what to do, if there is no UI or no plugin.
    """
    # The jar alone carries this package without the tools.
    from spark_elastic_tools.report import report as made

    return made(spark, headers)
