"""Tests of configure(): the settings of a session's builder afterwards. No JVM is started."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

import spark_elastic
from spark_elastic import session
from spark_elastic.spark_conf import DRIVER_CLASS_PATH, JARS, PLUGIN, PLUGINS, ConflictError

JAR = Path("/opt/spark-elastic_4.2_2.13-0.1.0.jar")


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(session, "jar_path", lambda spark: JAR)
    # A process that also runs tests with a JVM may still have its gateway.
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    for name in ("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "SPARK_REMOTE"):
        monkeypatch.delenv(name, raising=False)


def options(builder: SparkSession.Builder) -> dict[str, Any]:
    return dict(builder._options)


def configured(**given: str) -> dict[str, Any]:
    builder = SparkSession.builder
    for key, value in given.items():
        builder = builder.config(key, value)
    return options(spark_elastic.configure(builder))


def test_a_builder_gets_all_that_the_plugin_needs_and_keeps_the_rest() -> None:
    builder = SparkSession.builder.appName("mine")
    assert spark_elastic.configure(builder) is builder
    assert options(builder) == {
        "spark.app.name": "mine",
        PLUGINS: PLUGIN,
        JARS: str(JAR),
        DRIVER_CLASS_PATH: str(JAR),
        "spark.elastic.schedulerMode": "reactive",
        "spark.elastic.python": sys.executable,
    }


def test_twice_is_once() -> None:
    builder = spark_elastic.configure(SparkSession.builder)
    once = options(builder)
    assert options(spark_elastic.configure(builder)) == once


def test_the_builder_the_arguments_and_the_defaults_are_added_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(f"{JARS} /defaults.jar\n{PLUGINS} org.defaults.P\n")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--jars /submitted.jar pyspark-shell")
    result = configured(**{DRIVER_CLASS_PATH: "/mine"})
    assert result[PLUGINS] == f"org.defaults.P,{PLUGIN}"
    assert result[JARS] == f"/submitted.jar,{JAR}"
    assert result[DRIVER_CLASS_PATH] == os.pathsep.join(["/mine", str(JAR)])


def test_arguments_that_would_hide_the_jar_are_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--jars /a.jar --driver-class-path /b pyspark-shell")
    with pytest.raises(ConflictError, match=f"add {JAR} to its --jars"):
        configured()
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--jars /a.jar,{JAR} --driver-class-path /b pyspark-shell")
    assert configured()[JARS] == f"/a.jar,{JAR}"


def test_another_mode_is_a_conflict() -> None:
    builder = SparkSession.builder.config("spark.elastic.scheduler-mode", "off")
    with pytest.raises(ConflictError, match="is 'off' already"):
        spark_elastic.configure(builder, mode="reactive")


class Running:
    """A running context with the plugin and these settings."""

    def __init__(self, **conf: str) -> None:
        self._conf = {PLUGINS: PLUGIN, **conf}

    def getConf(self) -> SparkConf:
        return SparkConf(loadDefaults=False, _jvm=None).setAll(list(self._conf.items()))


@pytest.mark.parametrize("name", ["spark.elastic.schedulerMode", "spark.elastic.scheduler-mode"])
def test_a_context_that_is_up_keeps_its_mode_and_says_so(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", Running(**{name: "adaptive"}))
    builder = SparkSession.builder
    with pytest.warns(UserWarning, match="'reactive' is left out: .* stays 'adaptive'") as said:
        assert spark_elastic.configure(builder, mode="reactive") is builder
    assert said[0].filename == __file__
    # Warnings are errors here, so this also tests that nothing is reported without another mode.
    spark_elastic.configure(builder, mode="adaptive")
    spark_elastic.configure(builder)


def test_a_context_that_is_up_takes_no_mode_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", Running())
    with pytest.raises(ConflictError, match="allowed is one of"):
        spark_elastic.configure(SparkSession.builder, mode="elastic")


def test_a_client_of_spark_connect_is_told_where_to_go() -> None:
    with pytest.raises(ConflictError, match="where the server is started"):
        spark_elastic.configure(SparkSession.builder.remote("sc://somewhere"))


def test_the_name_stays_a_function_when_its_module_is_loaded() -> None:
    import spark_elastic.configure

    assert callable(spark_elastic.configure)
    assert set(spark_elastic.__all__) == {"__version__", "configure", "report"}
