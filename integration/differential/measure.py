"""The cost of a program's stages, as summed up by sparkMeasure if its jar is available."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark_elastic.installation import installed_spark
from spark_elastic_lab.compare.cost import CostError, measure_jar

_CLASS = "ch.cern.sparkmeasure.StageMetrics"
MEASURED = "measured"
#: Those of its forty metrics that depend on the choice of partitions; ms and bytes.
NUMBERS = ("numTasks", "executorRunTime", "executorCpuTime", "peakExecutionMemory", "diskBytesSpilled")


def jar() -> Path | None:
    """Return sparkMeasure's jar for the installed Spark; if there is none, print why and return None."""
    try:
        return measure_jar(installed_spark())
    except CostError as error:
        print(f"nothing is measured: {error}", file=sys.stderr, flush=True)
        return None


class Meter:
    """Measures one session of an application; measures nothing if the jar is not on its class path."""

    def __init__(self, spark: SparkSession) -> None:
        self._stages: Any = None
        if _is_loadable(spark):
            # It is installed only for tests, and needs its class at construction.
            from sparkmeasure import StageMetrics

            self._stages = StageMetrics(spark)
            self._stages.begin()

    def end(self) -> Mapping[str, int]:
        """Return the cost of the stages since the start."""
        if self._stages is None:
            return {}
        self._stages.end()
        # Its listener is notified of a stage some time after the action has ended.
        self._stages.sc._jsc.sc().listenerBus().waitUntilEmpty()
        found = self._stages.aggregate_stagemetrics()
        self._stages.remove_listener()
        return {name: int(found[name]) for name in NUMBERS}


def _is_loadable(spark: SparkSession) -> bool:
    """Return whether the driver has the jar."""
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return loader.getResource(f"{_CLASS.replace('.', '/')}.class") is not None
