"""Tests of the jars of a PySpark for another Scala than pip's, and of which tests run on which version."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.matrix import environment
from integration.matrix.__main__ import CHECKOUT, OF_PYSPARK, QUICK, WHOLE, chosen
from spark_versions import SparkVersion, supported

ROW = SparkVersion("3.5.9", "maven", "3.5.9", "2.13.8", 8, "0.10.9.7", ())


def put(folder: Path, *names: str) -> list[Path]:
    folder.mkdir()
    files = [folder / name for name in names]
    for file in files:
        file.write_text(folder.name)
    return files


def test_what_is_for_a_scala_is_replaced_and_the_rest_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(
        tmp_path / "jars",
        *("spark-sql_2.12-3.5.9.jar", "spark-hive_2.12-3.5.9.jar", "json4s-ast_2.12-3.7.0.jar"),
        *("scala-library-2.12.18.jar", "netty-all-4.1.96.jar", "hive-shims-scheduler-2.3.9.jar"),
    )
    resolved = put(
        tmp_path / "central",
        *("spark-sql_2.13-3.5.9.jar", "spark-core_2.13-3.5.9.jar", "json4s-ast_2.13-3.7.0.jar"),
        *("scala-library-2.13.8.jar", "netty-all-4.1.97.jar"),
    )
    asked: set[str] = set()

    def fetch(*wanted: str, transitive: bool) -> list[Path]:
        asked.update(wanted)
        return resolved

    monkeypatch.setattr(environment, "fetch", fetch)
    environment.take_jars_for(ROW, tmp_path / "jars")
    assert asked == {"org.apache.spark:spark-sql_2.13:3.5.9"}
    assert {jar.name: jar.read_text() for jar in (tmp_path / "jars").iterdir()} == {
        "spark-sql_2.13-3.5.9.jar": "central",
        "spark-core_2.13-3.5.9.jar": "central",
        "json4s-ast_2.13-3.7.0.jar": "central",
        "scala-library-2.13.8.jar": "central",
        "netty-all-4.1.96.jar": "jars",
        "hive-shims-scheduler-2.3.9.jar": "jars",
    }


def test_each_test_of_the_matrix_is_there_and_runs_once() -> None:
    chosen = [CHECKOUT / test for test in WHOLE + OF_PYSPARK]
    assert [path for path in chosen if not path.exists()] == []
    assert [path for path in chosen if sum(path.is_relative_to(other) for other in chosen) != 1] == []


def test_what_needs_hive_or_the_shell_runs_on_the_pyspark_of_pip_alone() -> None:
    rows = {row.name: row for row in supported()}
    assert set(OF_PYSPARK) <= set(chosen(rows["3.5"], quick=False))
    assert set(chosen(rows["3.5_2.13"], quick=False)) == set(WHOLE)
    assert chosen(rows["3.5"], quick=True) == QUICK


@pytest.mark.parametrize("test", WHOLE + OF_PYSPARK)
def test_what_is_listed_is_there(test: str) -> None:
    assert (CHECKOUT / test).exists()
