"""Tests of which of Spark's own suites exist: only Maven Central's own answer means that there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.spark_suites import suite_jars
from spark_elastic_tools.maven import FetchError, NotPublishedError
from spark_versions import SparkVersion

ROW = SparkVersion("4.1.3", "maven", "4.1.4", "2.13.17", 17, "0.10.9.9", ())


def asked(monkeypatch: pytest.MonkeyPatch, answer: FetchError | None) -> list[str]:
    """Let the network give this answer; return the requested addresses."""
    wanted: list[str] = []

    def fetch(*coordinates: str, transitive: bool) -> list[Path]:
        wanted.extend(coordinates)
        if answer is not None:
            raise answer
        return []

    monkeypatch.setattr(suite_jars, "fetch", fetch)
    monkeypatch.setattr(suite_jars, "installed_row", lambda: ROW)
    return wanted


@pytest.mark.parametrize(("answer", "there"), [(None, True), (NotPublishedError("not there"), False)])
def test_suites_are_those_of_the_release_on_maven_central(
    answer: FetchError | None, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = asked(monkeypatch, answer)
    assert suite_jars.published() == there
    assert wanted == ["org.apache.spark:spark-sql_2.13:4.1.3:tests"]


def test_a_network_that_fails_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked(monkeypatch, FetchError("no network"))
    with pytest.raises(suite_jars.JarFailure, match="no network"):
        suite_jars.published()
