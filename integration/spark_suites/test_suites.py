"""Spark's own suites of the classes that the plugin replaces pass with the plugin as they do without."""

from __future__ import annotations

import pytest

from integration.spark_suites import baseline
from integration.spark_suites.differences import differences
from integration.spark_suites.run import DEFAULT
from integration.spark_suites.suite_runner import run_suite


@pytest.mark.integration
@pytest.mark.timeout(1900)
@pytest.mark.parametrize(
    "suite", [DEFAULT[0], *(pytest.param(suite, marks=pytest.mark.slow) for suite in DEFAULT[1:])]
)
def test_nothing_that_passes_in_plain_spark_breaks(suite: str) -> None:
    outcomes = run_suite(suite, plugin=True, settings={})
    assert outcomes, "the suite gave no results: see target/spark-suites"
    assert baseline.broken(suite, outcomes, differences(suite, {})) == {}
