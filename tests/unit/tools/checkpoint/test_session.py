"""Tests of which Spark does the work, with which settings, and of what its exceptions say."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_elastic.installation import Spark
from spark_elastic.spark_conf import DRIVER_CLASS_PATH, JARS
from spark_elastic_tools.checkpoint import session
from spark_elastic_tools.checkpoint.session import NoSparkError, java_message, needed_spark

JAR = Path("/lib/spark-elastic_4.2_2.13-0.1.0.jar")


def install(monkeypatch: pytest.MonkeyPatch, spark: Spark | None, pyspark: Spark | None) -> None:
    monkeypatch.setattr(session, "installed_spark", lambda: spark)
    monkeypatch.setattr(session, "installed_pyspark", lambda: pyspark)
    monkeypatch.setattr(session, "find_spec", lambda name: object() if pyspark is not None else None)


@pytest.mark.parametrize("version", ["4.2.0", "4.3.1", "5.0.0", "4.10.0"])
def test_a_new_spark_does_the_work(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    install(monkeypatch, Spark(version), Spark(version))
    assert needed_spark() == Spark(version)


@pytest.mark.parametrize("version", ["4.1.4", "3.5.9"])
def test_an_older_spark_says_what_is_needed(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    install(monkeypatch, Spark(version), Spark(version))
    with pytest.raises(NoSparkError, match=rf"Spark {version} \(from pip\) .*4\.2 or later.*pip install"):
        needed_spark()


def test_no_pyspark_says_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, None, None)
    with pytest.raises(NoSparkError, match=r"^no PySpark is installed here; .*pip install 'pyspark>=4\.2'"):
        needed_spark()
    install(monkeypatch, Spark("4.2.0"), None)
    with pytest.raises(NoSparkError, match=r"^Spark 4\.2\.0, but no PySpark, is installed here"):
        needed_spark()


def test_the_spark_of_spark_home_has_to_be_that_of_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    install(monkeypatch, Spark("4.3.0"), Spark("4.2.0"))
    with pytest.raises(NoSparkError, match=r"from SPARK_HOME\) is not the Spark 4\.2\.0 of PySpark: unset"):
        needed_spark()


def settings(monkeypatch: pytest.MonkeyPatch, folder: Path, master: str, **conf: str) -> dict[str, str]:
    monkeypatch.setenv("SPARK_CONF_DIR", str(folder))
    return session._settings(master, conf, JAR, folder)


def test_the_plugin_is_off_and_the_jar_is_added(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    defaults = f"spark.plugins org.x.P\nspark.driver.host 10.0.0.1\n{DRIVER_CLASS_PATH} /lib/s3.jar\n"
    (tmp_path / "spark-defaults.conf").write_text(defaults)
    found = settings(monkeypatch, tmp_path, "local[*]", **{JARS: "/lib/more.jar", "spark.hadoop.a": "b"})
    assert found["spark.plugins"] == ""
    assert found[DRIVER_CLASS_PATH] == f"/lib/s3.jar:{JAR}"
    assert found[JARS] == f"/lib/more.jar,{JAR}"
    assert found["spark.hadoop.a"] == "b"
    assert found["spark.master"] == "local[*]"
    assert "spark.driver.host" not in found
    assert found["spark.driver.bindAddress"] == "127.0.0.1"


def test_a_cluster_reaches_the_driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "spark.driver.bindAddress" not in settings(monkeypatch, tmp_path, "yarn")


def test_unreadable_defaults_and_another_jar_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(NoSparkError, match=r"spark-elastic_3\.5_2\.12-0\.1\.0\.jar, but this installation"):
        settings(monkeypatch, tmp_path, "local", **{JARS: "/lib/spark-elastic_3.5_2.12-0.1.0.jar"})
    (tmp_path / "spark-defaults.conf").write_bytes(b"\xff")
    with pytest.raises(NoSparkError, match=r"spark-defaults\.conf cannot be read"):
        settings(monkeypatch, tmp_path, "local")


class Java(Exception):
    """An exception as Py4J raises it, and the Java object that it has."""

    def __init__(self, message: str | None, cause: Java | None = None) -> None:
        super().__init__("An error occurred while calling o1.x")
        self.java_exception = self
        self._message = message
        self._cause = cause

    def getMessage(self) -> str | None:
        return self._message

    def getCause(self) -> Java | None:
        return self._cause

    def toString(self) -> str:
        return "java.lang.NullPointerException"


def test_an_exception_says_what_happened_and_why() -> None:
    assert java_message(Java("it has no committed micro-batch")) == "it has no committed micro-batch"
    assert java_message(Java("Job aborted.\nDriver stacktrace:", Java("x", Java("no key\n")))) == (
        "Job aborted.: no key"
    )
    assert java_message(Java("a", Java("a"))) == "a"
    assert java_message(Java(None)) == "java.lang.NullPointerException"
    assert java_message(ConnectionError("\n refused\n")) == "refused"
    assert java_message(ConnectionError()) == "ConnectionError"
