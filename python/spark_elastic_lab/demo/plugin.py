"""The settings with which the demonstration switches the plugin on."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from spark_elastic.jar import jar_path
from spark_elastic.spark_conf import plugin_conf
from spark_elastic_lab.demo.steps import PLAYS, Mode

# Queries with bounds share their slots, so that each can have as many as its bound says.
SLOT_SHARING_GROUP = "demo"
_AT_ONCE = {
    "spark.elastic.adaptiveScheduler.rescalePolicy": "always",
    "spark.elastic.adaptiveScheduler.executing.cooldownAfterRescaling": "5s",
}
"""With these, every change of the slots is followed, also where a gain would have to be waited for."""
_REQUESTING = {
    "spark.elastic.slotIdleTimeout": "2s",
    "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
}
_SETTINGS: Mapping[Mode, Mapping[str, str]] = {
    Mode.REACTIVE: {
        **_AT_ONCE,
        "spark.elastic.adaptiveScheduler.executing.resourceStabilizationTimeout": "1s",
    },
    Mode.ADAPTIVE: {
        **_AT_ONCE,
        **_REQUESTING,
        # Executors that were asked for come one by one: all of them are waited for.
        "spark.elastic.adaptiveScheduler.executing.resourceStabilizationTimeout": "20s",
    },
    Mode.AUTOSCALE: {
        **_AT_ONCE,
        **_REQUESTING,
        "spark.elastic.policy": "autoscale",
        "spark.elastic.autoscale.maxLag": "20s",
        # By default five minutes, for loads of days.
        "spark.elastic.autoscale.scaleDownWindow": "15s",
        # To read the schema of a table is no work for which executors should come or go.
        "spark.elastic.autoscale.batchGain": "none",
        # Its few windows are never too much for one slot, whatever else the machine does.
        "spark.elastic.query.totals.upperBound": "1",
        "spark.elastic.maxExecutors": str(sum(PLAYS[Mode.AUTOSCALE].workers)),
        # By their bytes all lines of a micro-batch would be one task, and its waiting that of one slot.
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
    },
}


def demo_conf(journal: Path, mode: Mode = Mode.REACTIVE, policy_file: Path | None = None) -> dict[str, str]:
    """Return what `spark-elastic conf` prints, and waiting times short enough for the scenario of a mode."""
    scheduler = "reactive" if mode is Mode.REACTIVE else "adaptive"
    return {
        **plugin_conf({}, jar=jar_path(), python=sys.executable, mode=scheduler),
        **_SETTINGS[mode],
        "spark.elastic.journal.dir": str(journal),
        **({"spark.elastic.policyFile": str(policy_file)} if policy_file is not None else {}),
    }
