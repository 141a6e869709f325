"""The settings with which the demonstration switches the plugin on."""

from __future__ import annotations

import sys
from pathlib import Path

from spark_elastic.jar import jar_path
from spark_elastic.spark_conf import plugin_conf


def demo_conf(journal: Path, policy: Path | None = None) -> dict[str, str]:
    """Return what `spark-elastic conf` prints, and waiting times short enough for the scenario.

    With a `policy` file it is adaptive mode.
    """
    adaptive = {
        "spark.elastic.policyFile": str(policy),
        "spark.elastic.slotIdleTimeout": "2s",
        "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
        # Executors that were asked for come one by one: all of them are waited for.
        "spark.elastic.adaptiveScheduler.executing.resourceStabilizationTimeout": "20s",
    }
    return {
        **plugin_conf({}, jar=jar_path(), python=sys.executable, mode="adaptive" if policy else "reactive"),
        "spark.elastic.adaptiveScheduler.rescalePolicy": "always",
        "spark.elastic.adaptiveScheduler.executing.cooldownAfterRescaling": "5s",
        "spark.elastic.adaptiveScheduler.executing.resourceStabilizationTimeout": "1s",
        "spark.elastic.journal.dir": str(journal),
        **(adaptive if policy else {}),
    }
