"""Tests that a jar is compiled once per set of sources in any checkout, and that the cache stays small."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

import build_jar
from spark_versions import SparkVersion, UnknownSparkError, named

ROW = SparkVersion("4.2.0", "maven", "4.2.0", "2.13.18", 17, "0.10.9.9", ())


class Builds:
    """Checkouts with one source each, and the calls of sbt in them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.compiled: list[str] = []
        self._folder = folder
        self._patch = monkeypatch
        monkeypatch.setenv("SPARK_ELASTIC_CACHE", str(folder / "cache"))
        monkeypatch.setattr(build_jar, "run_sbt", self._sbt)

    def build(self, checkout: str, source: str) -> str:
        """Build in a checkout with this source; return the content of the jar."""
        root = self._folder / checkout
        sources = root / "jvm-shim" / "src" / "main"
        file = sources / "scala" / "A.scala"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
        (root / "build.sbt").touch()
        self._patch.setattr(build_jar, "CHECKOUT", root)
        self._patch.setattr(build_jar, "SOURCES", sources)
        self._patch.setattr(build_jar, "JARS", root / "jars")
        with zipfile.ZipFile(build_jar.build(ROW, "1.0")) as jar:
            return jar.read("A.class").decode()

    def kept(self) -> int:
        """Count the jars in the cache."""
        return len(list((self._folder / "cache" / "jars").rglob("*.jar")))

    def _sbt(self, checkout: Path, properties: dict[str, str], *commands: str) -> None:
        source = (checkout / "jvm-shim/src/main/scala/A.scala").read_text()
        self.compiled.append(f"{checkout.name}: {source}")
        jar = checkout / "jvm-shim" / "target" / "spark-4.2_2.13" / ROW.jar_name("1.0")
        jar.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(jar, "w") as archive:
            archive.writestr("A.class", source)


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Builds:
    return Builds(tmp_path, monkeypatch)


def test_the_same_sources_are_compiled_once(builds: Builds) -> None:
    assert [builds.build(checkout, "1") for checkout in ("one", "one", "two")] == ["1", "1", "1"]
    assert builds.compiled == ["one: 1"]


def test_other_sources_are_compiled_and_earlier_ones_are_not_again(builds: Builds) -> None:
    assert [builds.build("one", source) for source in ("1", "2", "1")] == ["1", "2", "1"]
    assert builds.compiled == ["one: 1", "one: 2"]


def test_the_cache_keeps_the_last_ones(builds: Builds) -> None:
    for source in range(build_jar.KEPT + 2):
        builds.build("one", str(source))
    assert builds.kept() == build_jar.KEPT
    builds.build("two", str(build_jar.KEPT + 1))
    assert len(builds.compiled) == build_jar.KEPT + 2


def test_a_build_that_fails_leaves_nothing_in_the_cache(
    builds: Builds, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("does not compile")

    monkeypatch.setattr(build_jar, "run_sbt", broken)
    with pytest.raises(RuntimeError):
        builds.build("one", "1")
    assert builds.kept() == 0


def test_what_takes_long_is_said_before(builds: Builds, capsys: pytest.CaptureFixture[str]) -> None:
    builds.build("one", "1")
    first = capsys.readouterr().out
    assert first.startswith("compiling the shim for Spark 4.2.0 with Scala 2.13.18: about a minute on")
    builds.build("two", "1")
    assert capsys.readouterr().out.startswith("took spark-elastic_4.2_2.13-1.0.jar from ")


@pytest.mark.parametrize(
    ("asked", "built_for"),
    [("4.2", "4.2_2.13"), ("4.1.4", "4.1_2.13"), ("3.5", "3.5_2.12"), ("3.5_2.13", "3.5_2.13")],
)
def test_a_version_of_spark_is_found_by_what_people_type(asked: str, built_for: str) -> None:
    assert named(asked).built_for == built_for


@pytest.mark.parametrize("asked", ["4", "9.9", "4.2_2.12", ""])
def test_a_version_that_is_not_supported_is_refused_with_those_that_are(asked: str) -> None:
    with pytest.raises(UnknownSparkError, match=r"only for 4\.2, 4\.3, 4\.1, 4\.0, 3\.5, 3\.5_2\.13"):
        named(asked)
