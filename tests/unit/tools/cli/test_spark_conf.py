"""Tests of reading Spark's configuration and adding the plugin to it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spark_elastic.spark_conf import (
    DRIVER_CLASS_PATH,
    JARS,
    PLUGIN,
    PLUGINS,
    ConflictError,
    default_properties_file,
    has_jar,
    plugin_conf,
    read_properties,
    submit_arguments,
)

JAR = Path("/opt/spark-elastic_4.2_2.13-0.1.0.jar")


def added(existing: dict[str, str] | None = None, mode: str | None = None) -> dict[str, str]:
    return plugin_conf(existing or {}, jar=JAR, python="/opt/python", mode=mode)


def test_nothing_set_gets_all_that_the_plugin_needs() -> None:
    assert added() == {
        PLUGINS: PLUGIN,
        JARS: str(JAR),
        DRIVER_CLASS_PATH: str(JAR),
        "spark.elastic.schedulerMode": "reactive",
        "spark.elastic.python": "/opt/python",
    }


def test_lists_keep_what_they_have() -> None:
    path = os.pathsep.join(["/a.jar", "/b"])
    conf = added({PLUGINS: "org.x.P, org.y.Q", JARS: "hdfs://a.jar", DRIVER_CLASS_PATH: path})
    assert conf[PLUGINS] == f"org.x.P,org.y.Q,{PLUGIN}"
    assert conf[JARS] == f"hdfs://a.jar,{JAR}"
    assert conf[DRIVER_CLASS_PATH] == os.pathsep.join([path, str(JAR)])


def test_adding_twice_is_adding_once() -> None:
    once = added({PLUGINS: "org.x.P"})
    assert {**once, **added(once)} == once
    elsewhere = f"s3://bucket/{JAR.name}"
    assert added({JARS: elsewhere})[JARS] == elsewhere


@pytest.mark.parametrize("name", ["spark.elastic.schedulerMode", "spark.elastic.scheduler-mode"])
def test_a_mode_that_is_set_stays_unless_another_one_is_asked_for(name: str) -> None:
    assert "spark.elastic.schedulerMode" not in added({name: "off"})
    assert "spark.elastic.schedulerMode" not in added({name: "off"}, mode="off")
    with pytest.raises(ConflictError, match=f"{name} is 'off' already"):
        added({name: "off"}, mode="reactive")


def test_a_policy_python_that_is_set_stays() -> None:
    assert "spark.elastic.python" not in added({"spark.elastic.python": "python3.12"})


@pytest.mark.parametrize(
    ("existing", "mode", "says"),
    [
        ({"spark.elastic.nonsense": "1"}, None, "spark.elastic.nonsense is not a setting"),
        ({}, "turbo", "'turbo', allowed is one of reactive, adaptive, off"),
        ({JARS: "/old/spark-elastic_4.2_2.13-0.0.9.jar"}, None, "0.0.9.jar, but this installation needs"),
    ],
)
def test_what_does_not_go_together_is_refused(existing: dict[str, str], mode: str | None, says: str) -> None:
    with pytest.raises(ConflictError, match=says):
        added(existing, mode)


def test_a_path_with_a_comma_is_refused() -> None:
    with pytest.raises(ConflictError, match="comma"):
        plugin_conf({}, jar=Path("/a,b/x.jar"), python="p")


def test_our_jars_are_found_in_lists() -> None:
    assert has_jar(f"/a.jar, file:{JAR} ,/spark-elastic.txt", ",") == [f"file:{JAR}"]
    assert has_jar("", ",") == []


def test_properties_are_read_as_java_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "spark-defaults.conf"
    file.write_text(
        "# comment\n! another\n\n"
        "spark.master   local[2]\n"
        "  spark.a=1\n"
        "spark.b : two words \n"
        "spark.c\tx=y\n"
        "spark.jars  /a.jar,\\\n    /b.jar\n"
        "spark.path C:\\\\temp\n"
        "spark.empty\n"
        "spark.a = 2\n"
        "other.key 5\n"
    )
    assert read_properties(file) == {
        "spark.master": "local[2]",
        "spark.a": "2",
        "spark.b": "two words",
        "spark.c": "x=y",
        "spark.jars": "/a.jar,/b.jar",
        "spark.path": "C:\\temp",
        "spark.empty": "",
    }


def test_where_the_defaults_are(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    for folder in (home / "conf", other):
        folder.mkdir(parents=True)
        (folder / "spark-defaults.conf").write_text("")
    assert default_properties_file({}, home) == home / "conf" / "spark-defaults.conf"
    assert default_properties_file({"SPARK_CONF_DIR": str(other)}, home) == other / "spark-defaults.conf"
    assert default_properties_file({"SPARK_CONF_DIR": str(tmp_path)}, home) is None
    assert default_properties_file({}, None) is None


def test_arguments_of_spark_submit_are_settings() -> None:
    text = "--master yarn --conf spark.a=1=2 -c spark.b=x --conf=spark.c='y z' --jars /a.jar"
    text += " --driver-class-path /b pyspark-shell"
    assert submit_arguments(text) == [
        ("spark.a", "1=2"),
        ("spark.b", "x"),
        ("spark.c", "y z"),
        (JARS, "/a.jar"),
        (DRIVER_CLASS_PATH, "/b"),
    ]
    assert submit_arguments("pyspark-shell") == []
