"""Tests of the demonstration's check of its prerequisites."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_elastic_lab.demo.prerequisites import fetch_problem, problems
from spark_elastic_tools.maven import FetchError


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
