"""What the stages of a program cost, as sparkMeasure adds it up, where its jar can be had."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark_elastic.installation import installed_spark
from spark_elastic_tools.maven import FetchError, fetch

_VERSION = "0.28"
_CLASS = "ch.cern.sparkmeasure.StageMetrics"
MEASURED = "measured"
#: Of the forty numbers those that a choice of partitions changes; ms and bytes.
NUMBERS = ("numTasks", "executorRunTime", "executorCpuTime", "peakExecutionMemory", "diskBytesSpilled")


def jar() -> Path | None:
    """Return sparkMeasure's jar for the installed Spark; None if there is none, and a line says why."""
    spark = installed_spark()
    scala = spark.scala if spark is not None else None
    try:
        (found,) = fetch(f"ch.cern.sparkmeasure:spark-measure_{scala}:{_VERSION}", transitive=False)
    except FetchError as error:
        print(f"nothing is measured: {str(error).splitlines()[0]}", file=sys.stderr, flush=True)
        return None
    return found


class Meter:
    """Measures in one session of an application: nothing where the jar is not on its class path."""

    def __init__(self, spark: SparkSession) -> None:
        self._stages: Any = None
        if _is_loadable(spark):
            # It is installed for tests alone, and looks for its class when it is made.
            from sparkmeasure import StageMetrics

            self._stages = StageMetrics(spark)
            self._stages.begin()

    def end(self) -> Mapping[str, int]:
        """Return what the stages since the start have cost."""
        if self._stages is None:
            return {}
        self._stages.end()
        # Its listener hears of a stage some time after the action has ended.
        self._stages.sc._jsc.sc().listenerBus().waitUntilEmpty()
        found = self._stages.aggregate_stagemetrics()
        self._stages.remove_listener()
        return {name: int(found[name]) for name in NUMBERS}


def _is_loadable(spark: SparkSession) -> bool:
    """Tell whether the driver has the jar."""
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return loader.getResource(f"{_CLASS.replace('.', '/')}.class") is not None
