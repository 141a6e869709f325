"""The settings with which the demonstration switches the plugin on."""

from __future__ import annotations

from pathlib import Path

from spark_elastic.jar import jar_path


def plugin_conf(journal: Path) -> dict[str, str]:
    """Return the Spark settings: reactive, with waiting times short enough for a scenario of 90 seconds."""
    jar = str(jar_path())
    return {
        "spark.plugins": "org.apache.spark.elastic.ElasticPlugin",
        "spark.jars": jar,
        "spark.driver.extraClassPath": jar,
        "spark.elastic.schedulerMode": "reactive",
        "spark.elastic.adaptiveScheduler.rescalePolicy": "always",
        "spark.elastic.adaptiveScheduler.executing.cooldownAfterRescaling": "5s",
        "spark.elastic.adaptiveScheduler.executing.resourceStabilizationTimeout": "1s",
        "spark.elastic.journal.dir": str(journal),
    }
