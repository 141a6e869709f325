"""The settings with which the demonstration switches the plugin on."""

from __future__ import annotations

import sys
from pathlib import Path

from spark_elastic.jar import jar_path
from spark_elastic.spark_conf import plugin_conf


def demo_conf(journal: Path) -> dict[str, str]:
    """Return what `spark-elastic conf` prints, and waiting times short enough for the scenario."""
    return {
        **plugin_conf({}, jar=jar_path(), python=sys.executable, mode="reactive"),
        "spark.elastic.adaptiveScheduler.rescalePolicy": "always",
        "spark.elastic.adaptiveScheduler.executing.cooldownAfterRescaling": "5s",
        "spark.elastic.adaptiveScheduler.executing.resourceStabilizationTimeout": "1s",
        "spark.elastic.journal.dir": str(journal),
    }
