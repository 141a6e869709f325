"""What is fetched from Maven Central is said, since it can take minutes, and fetched once."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_elastic.maven import artifacts


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
    monkeypatch.setattr(artifacts, "_retrieve", retrieve)
    (jar,) = artifacts.fetch(*coordinates, transitive=transitive)
    assert jar.name == "one.jar"
    first = capsys.readouterr()
    assert (first.out, said in first.err) == ("", True)
    assert artifacts.fetch(*coordinates, transitive=transitive) == [jar]
    assert capsys.readouterr().err == ""
