"""Add the plugin to a Spark session builder."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_elastic.core.keys.rescaling import MODE
from spark_elastic.installation import installed_spark
from spark_elastic.jar import jar_path
from spark_elastic.settings import SettingsError, load
from spark_elastic.spark_conf import (
    DRIVER_CLASS_PATH,
    JARS,
    PLUGIN,
    ConflictError,
    default_properties_file,
    has_jar,
    has_plugin,
    plugin_conf,
    read_properties,
    submit_arguments,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HINT = "type `spark-submit $(spark-elastic conf) ...` instead"


def add_plugin(builder: SparkSession.Builder, mode: str | None) -> SparkSession.Builder:
    """Add the plugin as `configure` describes."""
    from pyspark import SparkConf, SparkContext

    options = {key: str(value) for key, value in builder._options.items()}
    if "spark.remote" in options or os.environ.get("SPARK_REMOTE"):
        raise ConflictError(
            f"a Spark Connect client has no driver of its own: where the server is started, {_HINT}"
        )
    # Not in the stubs: there is no public way to get the running context without starting one.
    context: SparkContext | None = SparkContext._active_spark_context
    if context is not None:
        running = dict(context.getConf().getAll())
        if has_plugin(running):
            _warn_of_another_mode(running, mode)
            return builder
        raise ConflictError(
            "a Spark context is up already, and plugins come up with it: "
            "call configure before the first session"
        )
    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        SparkContext._ensure_initialized()
        _require_class(SparkContext._jvm)
        existing = {**dict(SparkConf().getAll()), **options}
        added = plugin_conf(existing, jar=jar_path(installed_spark()), python=sys.executable, mode=mode)
    else:
        submitted = dict(submit_arguments(os.environ.get("PYSPARK_SUBMIT_ARGS", "")))
        existing = {**_defaults(os.environ), **submitted, **options}
        added = plugin_conf(existing, jar=jar_path(installed_spark()), python=sys.executable, mode=mode)
        _require_class_path(submitted, added)
    for key, value in added.items():
        builder = builder.config(key, value)
    return builder


def _warn_of_another_mode(running: Mapping[str, str], mode: str | None) -> None:
    """Warn a caller that requests another mode while a context is running: the context keeps its own mode."""
    if mode is None:
        return
    try:
        there, wanted = load(running)[MODE], load({MODE.full_name: mode})[MODE]
    except SettingsError as error:
        raise ConflictError(str(error)) from error
    if there != wanted:
        warnings.warn(
            f"mode '{wanted}' is left out: a Spark context is up, and {MODE.full_name} stays '{there}' "
            "while it is. Stop it first, or ask for the mode before the first session",
            stacklevel=4,
        )


def _defaults(environment: Mapping[str, str]) -> dict[str, str]:
    from pyspark.find_spark_home import _find_spark_home

    file = default_properties_file(environment, Path(_find_spark_home()))
    return read_properties(file) if file is not None else {}


def _require_class(jvm: Any) -> None:
    """Check that a running JVM has the jar, as its class path can no longer change. Raises ConflictError."""
    from py4j.protocol import Py4JJavaError

    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(PLUGIN)
    except Py4JJavaError:
        raise ConflictError(
            f"the driver's JVM is up already, without the jar on its class path: {_HINT}"
        ) from None


def _require_class_path(submitted: Mapping[str, str], added: Mapping[str, str]) -> None:
    """Check that the JVM will have the jar, although PYSPARK_SUBMIT_ARGS overrides the builder.

    Raises ConflictError.
    """
    at_launch = {**added, **submitted}
    if not has_jar(at_launch[DRIVER_CLASS_PATH], os.pathsep) and not has_jar(at_launch[JARS], ","):
        raise ConflictError(
            f"PYSPARK_SUBMIT_ARGS sets both {JARS} and {DRIVER_CLASS_PATH}, so the jar cannot be added: "
            f"add {added[DRIVER_CLASS_PATH].split(os.pathsep)[-1]} to its --jars"
        )
