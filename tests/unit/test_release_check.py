"""What can be told of a release without building one."""

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


OURS = ("META-INF/MANIFEST.MF", "org/apache/spark/elastic/A.class", "org/apache/spark/sql/elastic/B$.class")


def test_a_wheel_may_have_three_mebibytes() -> None:
    assert release_check.check_size("w", 3 << 20) == "w has 3,145,728 of 3,145,728 bytes"
    with pytest.raises(ReleaseError, match=r"3,145,729 bytes, at most 3,145,728"):
        release_check.check_size("w", (3 << 20) + 1)


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
