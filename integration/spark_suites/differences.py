"""Tests of Spark's own that assert what is decided here in another way, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping

Differences = dict[str, str]

#: With `spark.elastic.explicitParallelism` ignore, by suite and test. With `fixed` there are none.
_IGNORING: Mapping[str, Differences] = {}


def differences(suite: str, settings: Mapping[str, str]) -> Differences:
    """Return the tests of a suite that may fail with the plugin and these settings, and why."""
    ignoring = settings.get("spark.elastic.explicitParallelism") == "ignore"
    return _IGNORING.get(suite, {}) if ignoring else {}
