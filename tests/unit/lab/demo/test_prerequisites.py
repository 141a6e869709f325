"""Tests of the demonstration's check of its prerequisites."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_elastic_lab.demo.prerequisites import (
    fetch_problem,
    java_problem,
    java_version,
    oldest_java,
    problems,
)
from spark_elastic_tools.maven import FetchError


@pytest.mark.parametrize(
    ("banner", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_401"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("command not found", None),
    ],
)
def test_the_version_is_read_in_both_spellings(banner: str, version: int | None) -> None:
    assert java_version(banner) == version


def test_what_is_wrong_with_java_is_said_with_what_to_install() -> None:
    assert java_problem("/usr/bin/java", 'openjdk version "17.0.1"', 17) is None
    old = java_problem("/usr/bin/java", 'java version "1.8.0_401"', 17)
    assert old is not None
    assert "is Java 8" in old
    assert "openjdk-17" in old
    missing = java_problem(None, "", 17)
    assert missing is not None
    assert "no Java found" in missing


@pytest.mark.parametrize(
    ("spark", "oldest"), [("3.5.9", 8), ("4.0.5", 17), ("4.2.0", 17), ("4.10.1", 17), (None, 17)]
)
def test_how_old_java_may_be_is_the_sparks_matter(spark: str | None, oldest: int) -> None:
    assert oldest_java(spark) == oldest
    problem = java_problem("/usr/bin/java", 'java version "1.8.0_401"', oldest_java(spark))
    assert (problem is None) == (oldest == 8)


def test_a_java_home_that_leads_nowhere_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert any("does not run" in problem for problem in problems())


@pytest.mark.parametrize(
    ("jar", "advice"),
    [
        ("org.apache.kafka:kafka_2.13:4.2.0", "look at the network"),
        ("org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.2.0", "name its jar with --token-provider"),
    ],
)
def test_a_jar_that_cannot_be_fetched_is_one_line_with_what_to_do(jar: str, advice: str) -> None:
    problem = fetch_problem(FetchError(f"cannot fetch {jar}\n:: loading settings\n:: problems summary"))
    assert problem == f"cannot fetch {jar}: {advice}"
