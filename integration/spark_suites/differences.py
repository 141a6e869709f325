"""Tests of Spark's own that assert what is decided here in another way, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping

_REDUCERS = "asserts how many tasks Spark's own rule makes of sizes that the test has chosen"

Differences = dict[str, str]

#: By suite and test, unless `spark.elastic.batch.autoParallelism.enabled` is false.
_BATCH: Mapping[str, Differences] = {}

#: With `spark.elastic.explicitParallelism` ignore.
_IGNORING: Mapping[str, Differences] = {}


def differences(suite: str, settings: Mapping[str, str]) -> Differences:
    """Return the tests of a suite that may fail with the plugin and these settings, and why."""
    batch = settings.get("spark.elastic.batch.autoParallelism.enabled") != "false"
    ignoring = settings.get("spark.elastic.explicitParallelism") == "ignore"
    return (_BATCH.get(suite, {}) if batch else {}) | (_IGNORING.get(suite, {}) if ignoring else {})
