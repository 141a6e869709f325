"""Tests that files are fetched from Maven Central once, with a message, since that can take minutes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from spark_elastic_tools import maven
from spark_elastic_tools.maven import FetchError, NotPublishedError


@pytest.mark.parametrize(
    ("coordinates", "transitive", "said"),
    [
        (("org.a:one:1",), False, "fetching one:1 from Maven Central; once"),
        (("org.a:one:1:x", "org.a:two:2", "b:c:3"), True, "one:1:x and 2 more from Maven Central, and"),
    ],
)
def test_it_is_said_once_and_not_where_a_program_may_read(
    coordinates: tuple[str, ...],
    transitive: bool,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def retrieve(coordinates: tuple[str, ...], transitive: bool, ivy_home: Path, part: Path) -> Path:
        (part / "jars").mkdir()
        (part / "jars" / "one.jar").touch()
        return part / "jars"

    monkeypatch.setenv("SPARK_ELASTIC_CACHE", str(tmp_path))
    monkeypatch.setattr(maven, "_retrieve", retrieve)
    (jar,) = maven.fetch(*coordinates, transitive=transitive)
    assert jar.name == "one.jar"
    first = capsys.readouterr()
    assert (first.out, said in first.err) == ("", True)
    assert maven.fetch(*coordinates, transitive=transitive) == [jar]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("CLIENT ERROR: Not Found url=https://repository/org/a/one/1/one-1-tests.jar", NotPublishedError),
        ("CLIENT ERROR: Not Found url=https://repository/org/a/one/1/one-1.pom", FetchError),
        ("CLIENT ERROR: Forbidden url=https://repository/org/a/one/1/one-1-tests.jar", FetchError),
        ("Host repository not found. url=https://repository/org/a/one/1/one-1-tests.jar", FetchError),
        ("SERVER ERROR: Bad Gateway url=https://repository/org/a/one/1/one-1-tests.jar", FetchError),
    ],
)
def test_what_is_not_published_differs_from_what_cannot_be_reached(
    said: str, kind: type[FetchError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, f"\ttried\n{said}\n:: problems summary ::\nlost\n")

    monkeypatch.setenv("SPARK_ELASTIC_CACHE", str(tmp_path))
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(maven, "find_java", lambda: "java")
    with pytest.raises(FetchError, match=r"cannot fetch org\.a:one:1:tests .*\s+lost") as error:
        maven.fetch("org.a:one:1:tests", transitive=False)
    assert error.type is kind
    assert [*(tmp_path / "artifacts").iterdir()] == []
