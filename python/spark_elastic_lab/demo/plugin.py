"""The settings with which the demonstration turns the plugin on."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from spark_elastic.jar import jar_path
from spark_elastic.spark_conf import plugin_conf
from spark_elastic_lab.demo.steps import PLAYS, Mode

# Queries with bounds share their slots, so that each can use slots up to its bound.
SLOT_SHARING_GROUP = "demo"
_AT_ONCE = {
    "spark.elastic.adaptiveScheduler.rescalePolicy": "always",
    "spark.elastic.adaptiveScheduler.executing.cooldownAfterRescaling": "5s",
}
"""With these, queries follow every change of the slots, even where `gain` would wait."""
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
        # Requested executors arrive one by one; this waits for all of them.
        "spark.elastic.adaptiveScheduler.executing.resourceStabilizationTimeout": "20s",
    },
    Mode.AUTOSCALE: {
        **_AT_ONCE,
        **_REQUESTING,
        "spark.elastic.policy": "autoscale",
        "spark.elastic.autoscale.maxLag": "20s",
        # The default, five minutes, suits loads that last for days.
        "spark.elastic.autoscale.scaleDownWindow": "15s",
        # Reading a table's schema is no reason to add or remove executors.
        "spark.elastic.autoscale.batchGain": "none",
        # Its few windows always fit one slot, even on a busy machine.
        "spark.elastic.query.totals.upperBound": "1",
        "spark.elastic.maxExecutors": str(sum(PLAYS[Mode.AUTOSCALE].workers)),
        # Coalescing by bytes would put all lines of a micro-batch into one task, whose waits use one slot.
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
    },
}


def demo_conf(journal: Path, mode: Mode = Mode.REACTIVE, policy_file: Path | None = None) -> dict[str, str]:
    """Return the settings of `spark-elastic conf`, with timeouts short enough for the scenario of a mode."""
    scheduler = "reactive" if mode is Mode.REACTIVE else "adaptive"
    return {
        **plugin_conf({}, jar=jar_path(), python=sys.executable, mode=scheduler),
        **_SETTINGS[mode],
        "spark.elastic.journal.dir": str(journal),
        **({"spark.elastic.policyFile": str(policy_file)} if policy_file is not None else {}),
    }
