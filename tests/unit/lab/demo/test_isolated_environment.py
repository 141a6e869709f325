"""Tests that the demonstration's processes ignore the user's Spark, and use the given settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_elastic_lab.demo.cluster import isolated_environment, spark_home


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    conf = tmp_path / "conf"
    conf.mkdir()
    return conf


def test_what_the_user_has_set_for_spark_is_not_there(
    conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "ipython")
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-Dproxy=there")
    found = isolated_environment(conf, tmp_path / "local")
    assert "PYSPARK_DRIVER_PYTHON" not in found
    assert found["SPARK_CONF_DIR"] != "/etc/spark"
    assert found["JDK_JAVA_OPTIONS"].startswith("-Dproxy=there ")


def test_without_settings_of_spark_all_have_the_same_class_path(conf: Path, tmp_path: Path) -> None:
    log4j = conf / "log4j2.properties"
    log4j.touch()
    found = isolated_environment(conf, tmp_path / "local")
    assert Path(found["SPARK_CONF_DIR"]).parent == spark_home()
    assert not Path(found["SPARK_CONF_DIR"]).exists()
    assert f'"-Dlog4j2.configurationFile={log4j.as_uri()}"' in found["JDK_JAVA_OPTIONS"]


def test_settings_of_spark_are_read_from_their_folder(conf: Path, tmp_path: Path) -> None:
    (conf / "spark-defaults.conf").touch()
    found = isolated_environment(conf, tmp_path / "local")
    assert found["SPARK_CONF_DIR"] == str(conf)
    assert "log4j2" not in found["JDK_JAVA_OPTIONS"]
