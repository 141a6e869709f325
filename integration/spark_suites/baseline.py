"""The tests of Spark's own suites that pass without the plugin: one committed file per Spark version."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from build_jar import installed_row
from integration.spark_suites.differences import BY_CHANCE, Differences
from integration.spark_suites.suite_runner import Outcomes

Passing = dict[str, list[str]]


class NoResultsError(Exception):
    """A suite was aborted, hung or crashed without the plugin, so its tests have no results."""


class NoBaselineError(Exception):
    """The tests of a suite that pass without the plugin are unknown; the message says what to type."""


def baseline_file() -> Path:
    """Return the file for the installed minor version of Spark, as its suites; for each Scala it is the same.

    Raises NotListedError if that is not supported.
    """
    return Path(__file__).parent / f"baseline-{installed_row().pyspark}.json"


def load() -> Passing:
    """Return the names of the passing tests by suite; empty if this version has no baseline yet."""
    if not baseline_file().is_file():
        return {}
    suites: Passing = json.loads(baseline_file().read_text(encoding="utf-8"))
    return suites


def passing(suite: str) -> list[str]:
    """Return the names of a suite's tests that pass without the plugin. Raises NoBaselineError."""
    suites = load()
    if suite not in suites:
        raise NoBaselineError(
            f"{baseline_file().name} has no {suite}: find out what passes without the plugin with "
            f"`{sys.executable} -m integration.spark_suites --baseline {suite}`, and commit the file"
        )
    return suites[suite]


def store(suite: str, outcomes: Outcomes) -> None:
    """Replace one suite's list by the tests that passed, without those that pass by chance.

    Raises NoResultsError if there are no outcomes.
    """
    if not outcomes:
        raise NoResultsError(f"{suite} gave no results: see target/spark-suites")
    left_out = BY_CHANCE.get(suite, {})
    passed = sorted(name for name, why in outcomes.items() if why is None and name not in left_out)
    suites = load() | {suite: passed}
    text = json.dumps(dict(sorted(suites.items())), indent=1, ensure_ascii=False)
    baseline_file().write_text(text + "\n", encoding="utf-8")


def broken(suite: str, outcomes: Outcomes, expected: Differences) -> dict[str, str]:
    """Return the tests that pass without the plugin and did not pass in `outcomes`, each with the reason.

    Expected differences are left out, but one that passes is reported: the list must stay accurate. Raises
    NoBaselineError.
    """
    now = {name: outcomes.get(name, "not run") for name in passing(suite)}
    wrong = {name: why for name, why in now.items() if why is not None and name not in expected}
    return wrong | {name: "is listed as different, but passes" for name in expected if now.get(name) is None}
