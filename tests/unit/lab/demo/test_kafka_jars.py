"""Tests of which jars the demonstration fetches for Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_elastic_lab.demo import broker
from spark_elastic_tools.maven import FetchError

PROVIDER = "spark-token-provider-kafka-0-10"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the requested coordinates instead of fetching them."""
    coordinates: list[str] = []

    def fetch(*wanted: str, transitive: bool) -> list[Path]:
        coordinates.extend(wanted)
        return []

    monkeypatch.setattr(broker, "fetch", fetch)
    return coordinates


@pytest.mark.parametrize(
    ("spark", "scala", "clients"), [("3.5.9", "2.12", "3.4.1"), ("4.2.0", "2.13", "3.9.1")]
)
def test_the_source_is_that_of_the_installed_spark_and_of_its_scala(
    spark: str, scala: str, clients: str, asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / f"spark-core_{scala}-{spark}.jar").touch()
    monkeypatch.setattr(broker, "spark_home", lambda: tmp_path)
    broker.source_jars()
    assert asked[0] == f"org.apache.spark:spark-sql-kafka-0-10_{scala}:{spark}"
    assert asked[1] == f"org.apache.kafka:kafka-clients:{clients}"
    assert asked[-1] == f"org.apache.spark:{PROVIDER}_{scala}:{spark}"


def test_a_spark_without_jars_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "spark_home", lambda: tmp_path)
    with pytest.raises(FetchError, match=f"{tmp_path} has no jars/spark-core"):
        broker.source_jars()
