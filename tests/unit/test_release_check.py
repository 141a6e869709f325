"""Tests of the checks of a release that need no build."""

from __future__ import annotations

import zipfile
from io import BytesIO
from pathlib import Path

import pytest

import release_check
from release_check import ReleaseError


def jar(*names: str) -> bytes:
    made = BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return made.getvalue()


def wheel(folder: Path, **jars: bytes) -> Path:
    path = folder / "a.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("spark_elastic/__init__.py", "")
        for name, content in jars.items():
            archive.writestr(f"spark_elastic/jars/{name}.jar", content)
    return path


OURS = (
    *("META-INF/MANIFEST.MF", "org/apache/spark/elastic/A.class", "org/apache/spark/sql/elastic/B$.class"),
    "org/apache/spark/Scala213$Text213.class",
)


def test_what_is_too_large_is_refused() -> None:
    assert release_check.check_size("w", 1024, 1024) == "w has 1,024 of 1,024 bytes"
    with pytest.raises(ReleaseError, match=r"1,025 bytes, at most 1,024"):
        release_check.check_size("w", 1025, 1024)


def test_the_wheel_may_be_as_large_as_it_has_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = wheel(tmp_path, **dict.fromkeys("abcd", b""))
    monkeypatch.setattr(release_check, "DIST", tmp_path)
    assert release_check.small().endswith(" of 3,276,800 bytes")
    monkeypatch.setattr(release_check, "MOST_BYTES", made.stat().st_size // 4 - 1)
    with pytest.raises(ReleaseError, match="are wanted"):
        release_check.small()


def test_jars_have_our_classes_alone(tmp_path: Path) -> None:
    assert release_check.check_jars(wheel(tmp_path, a=jar(*OURS), b=jar(*OURS))).startswith("2 jars")
    with pytest.raises(ReleaseError, match=r"b\.jar has com/google/Guava\.class"):
        release_check.check_jars(wheel(tmp_path, a=jar(*OURS), b=jar(*OURS, "com/google/Guava.class")))
    with pytest.raises(ReleaseError, match="has no jar: type `make jars`"):
        release_check.check_jars(wheel(tmp_path))


@pytest.mark.parametrize("licence", ["MIT", "BSD-3-Clause", "Apache Software License", "MIT License; Other"])
def test_licences_that_go_with_ours_pass(licence: str) -> None:
    found = [{"Name": "attrs", "Version": "1", "License": licence}]
    assert release_check.check_licences(found).startswith("1 packages")


@pytest.mark.parametrize("licence", ["GNU General Public License v3 (GPLv3)", "UNKNOWN", ""])
def test_a_licence_that_nobody_has_looked_at_is_named(licence: str) -> None:
    found = [
        {"Name": "attrs", "Version": "1", "License": "MIT"},
        {"Name": "x", "Version": "2", "License": licence},
    ]
    with pytest.raises(ReleaseError) as failed:
        release_check.check_licences(found)
    assert str(failed.value).startswith(f"x 2 ({licence}): find out")


def carrying(folder: Path, *rows: str, licences: tuple[str, ...]) -> Path:
    """Write a jar like those of Maven that claims to carry packages and has these files of them."""
    path = folder / "m.jar"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("META-INF/NOTICE", "\n".join(["spark-elastic", "", *rows, ""]))
        for name in licences:
            archive.writestr(f"policy-engine/{name}", "")
    return path


A_ROW, B_ROW = "  A 1, MIT, https://a.example", "  py_b 2, PSF-2.0, https://b.example"
A_LICENCE, B_LICENCE = "a-1.dist-info/licenses/LICENSE", "py_b-2.dist-info/LICENCE.txt"


def test_a_jar_for_maven_carries_what_is_pinned_with_its_licences(tmp_path: Path) -> None:
    release_check.check_carried(
        carrying(tmp_path, A_ROW, B_ROW, licences=(A_LICENCE, B_LICENCE)), {"a": "1", "py_b": "2"}
    )


@pytest.mark.parametrize(
    ("rows", "licences", "pinned", "said"),
    [
        ((A_ROW,), (A_LICENCE,), {"a": "2"}, r"m\.jar carries \{'a': '1'\}, and \{'a': '2'\} is pinned"),
        ((A_ROW,), (A_LICENCE,), {"a": "1", "py_b": "2"}, "is pinned: type `make maven`"),
        (
            (A_ROW, B_ROW),
            (B_LICENCE,),
            {"a": "1", "py_b": "2"},
            "has no licence of a: see what policy-engine",
        ),
        (("  A 1, GPLv3, https://a.example",), (A_LICENCE,), {"a": "1"}, r"A 1 \(GPLv3\): find out whether"),
    ],
)
def test_a_jar_for_maven_that_carries_something_else_is_refused(
    tmp_path: Path, rows: tuple[str, ...], licences: tuple[str, ...], pinned: dict[str, str], said: str
) -> None:
    with pytest.raises(ReleaseError, match=said):
        release_check.check_carried(carrying(tmp_path, *rows, licences=licences), pinned)


def test_a_second_build_with_other_bytes_is_named(tmp_path: Path) -> None:
    for name, content in (("a", "1"), ("b", "2")):
        (tmp_path / name).write_text(content)
    first = release_check.checksums(tmp_path.iterdir())
    release_check.compare(first, release_check.checksums(tmp_path.iterdir()))
    (tmp_path / "b").write_text("3")
    with pytest.raises(ReleaseError, match="has another b: look for times"):
        release_check.compare(first, release_check.checksums(tmp_path.iterdir()))
    (tmp_path / "a").unlink()
    with pytest.raises(ReleaseError, match="has another a, b"):
        release_check.compare(first, release_check.checksums(tmp_path.iterdir()))


def test_what_a_tool_says_is_shown_if_it_fails() -> None:
    assert release_check.run("-c", "print('well')") == "well\n"
    with pytest.raises(ReleaseError, match=r"(?s)-c .*fails:\nout\nbad"):
        release_check.run("-c", "import sys; print('out'); sys.exit('bad')")
