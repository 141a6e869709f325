"""Spark's own suites of the classes that the plugin replaces pass with the plugin as they do without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.spark_suites import baseline, sweep
from integration.spark_suites.differences import differences
from integration.spark_suites.run import DEFAULT
from integration.spark_suites.suite_jars import published, suites_version
from integration.spark_suites.suite_runner import has_answered, run_suite


@pytest.mark.integration
@pytest.mark.matrix
@pytest.mark.timeout(1900)
@pytest.mark.parametrize("suite", DEFAULT)
def test_nothing_that_passes_in_plain_spark_breaks(suite: str) -> None:
    if not published():
        pytest.skip(f"Maven Central has no suites of Spark {suites_version()[0]}")
    baseline.passing(suite)  # fails early, before the suite takes minutes
    outcomes = run_suite(suite, plugin=True, settings={})
    assert outcomes, "the suite gave no results: see target/spark-suites"
    assert baseline.broken(suite, outcomes, differences(suite, {})) == {}


def test_a_version_without_a_baseline_is_told_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baseline, "baseline_file", lambda: tmp_path / "baseline-9.9.9.json")
    suite, other = DEFAULT
    with pytest.raises(baseline.NoBaselineError, match=r"baseline-9\.9\.9\.json has no ") as raised:
        baseline.broken(suite, {"works": None}, {})
    assert f" -m integration.spark_suites --baseline {suite}`" in str(raised.value)
    baseline.store(suite, {"works": None, "does not": "1 is not 2"})
    assert baseline.broken(suite, {"works": None}, {}) == {}
    assert baseline.broken(suite, {"works": "no"}, {}) == {"works": "no"}
    with pytest.raises(baseline.NoBaselineError, match=other):
        baseline.passing(other)


def test_a_suite_without_a_decision_of_its_own_has_no_answer(tmp_path: Path) -> None:
    decided = '{"actions":[{"type":"Report","decision":{"number":2,"query":"q"}}]}\n'
    of_all = '{"actions":[{"type":"Report","decision":{"number":1,"query":null}}]}\n'
    (tmp_path / "spark-elastic-local-1.jsonl").write_text(decided)
    (tmp_path / "spark-elastic-local-2.jsonl").write_text(of_all)
    assert not has_answered(tmp_path, warmed_up=True)
    assert has_answered(tmp_path, warmed_up=False)
    (tmp_path / "spark-elastic-local-2.jsonl.1").write_text(decided)
    assert has_answered(tmp_path, warmed_up=True)


def test_a_sweep_reports_what_fails_with_the_plugin_alone() -> None:
    suite = "org.apache.spark.sql.streaming.StreamingQuerySuite"
    known = "SPARK-53942: changing the number of stateless shuffle partitions via config"
    plain = {"a": None, "b": None, "c": "fails anyway", "d": None, known: None}
    plugin = {"a": None, "b": "1 did not equal 5", "c": "fails", known: "1 did not equal 5"}
    found = sweep.broken(suite, plugin, plain)
    assert found == {"b": "1 did not equal 5", "d": "not run"}
    # With the user's own partitions b passes, and what was not run there explains nothing.
    assert sweep.failing(found, {"a": None, "b": None}) == {"d": "not run"}
