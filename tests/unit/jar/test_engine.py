"""Tests that the jars of the Maven repository carry all that the policy process
needs, pinned and licensed.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import engine
from spark_elastic_tools.maven import FetchError

pytestmark = pytest.mark.long

PINNED = {
    canonicalize_name(name): (version, hashes)
    for name, version, hashes in re.findall(
        r"(?m)^([\w.-]+)==(\S+)((?: --hash=\S+)*)$", engine.REQUIREMENTS.read_text(encoding="utf-8")
    )
}


def wheel(folder: Path, name: str, version: str, files: Mapping[str, str], said: str = "") -> Path:
    """Write a wheel like those in pip's index."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
        about = f"{name}-{version}.dist-info"
        said = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{said}\nLong: text.\n"
        archive.writestr(f"{about}/METADATA", said)
        archive.writestr(f"{about}/RECORD", "")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    return path


def needed(name: str, python: str) -> Iterator[Requirement]:
    """Return the requirements of a package on a version of Python, and theirs in turn."""
    environment = {"python_version": python, "python_full_version": f"{python}.0", "extra": ""}
    for line in metadata.requires(name) or ():
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate(environment):
            yield requirement
            # A package that only older Pythons need may not be installed here.
            if canonicalize_name(requirement.name) != "exceptiongroup":
                yield from needed(requirement.name, python)


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_all_that_is_needed_is_pinned_in_a_version_that_will_do(python: str) -> None:
    found = list(needed("spark-elastic", python))
    assert {canonicalize_name(one.name) for one in found} <= set(PINNED)
    unfit = [str(one) for one in found if PINNED[canonicalize_name(one.name)][0] not in one.specifier]
    assert unfit == []


def test_nothing_is_pinned_that_is_not_needed() -> None:
    assert {canonicalize_name(one.name) for one in needed("spark-elastic", "3.10")} == set(PINNED)


def test_everything_is_pinned_to_one_file() -> None:
    lines = engine.REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if line and not line.startswith("#")]) == len(PINNED)
    assert {
        name: hashes
        for name, (_, hashes) in PINNED.items()
        if not re.fullmatch(r" --hash=sha256:[0-9a-f]{64}", hashes)
    } == {}


def test_every_module_can_be_imported_without_those_that_are_left_out(tmp_path: Path) -> None:
    """From a jar, with a Python that has none of our other packages, every imported module is found."""
    files = engine.files([])
    jar = tmp_path / "a.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    modules = sorted(
        name.removeprefix("policy-engine/").removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        for name in files
    )
    code = f"""
import importlib, sys
sys.path = [{str(jar / engine.FOLDER)!r}, *sys.path]
for name in {modules!r}:
    module = importlib.import_module(name)
    assert module.__file__.startswith({str(jar)!r}), module.__file__
print(len(sys.modules))
"""
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "spark_elastic.runtime.__main__" in modules


def test_tools_and_laboratory_are_not_in_it() -> None:
    names = set(engine.files([]))
    assert {"policy-engine/spark_elastic/__init__.py", "policy-engine/spark_elastic/http/openapi.py"} <= names
    assert {name for name in names if not name.endswith(".py")} == set()
    assert {name.split("/")[1] for name in names} == {"spark_elastic"}


def test_no_module_of_the_engine_reads_files_of_its_package() -> None:
    """A jar holds only modules; `jar.py` is for an installation by pip, which has the jars next to it."""
    reads = re.compile(r"\b__file__\b|importlib(\.| import )resources|pkgutil")
    assert [name for name, text in engine.files([]).items() if reads.search(text.decode())] == [
        "policy-engine/spark_elastic/jar.py"
    ]


def test_of_a_wheel_the_pure_part_and_the_licence_are_taken(tmp_path: Path) -> None:
    made = wheel(
        tmp_path,
        "falcon",
        "4.4.0",
        {
            "falcon/__init__.py": "a = 1",
            "falcon/cyutil/uri.pyx": "",
            "falcon/uri.cpython-310-x86_64-linux-gnu.so": "",
            "falcon/py.typed": "",
            "falcon/testing/client.py": "",
            "falcon/bench/dj/manage.py": "",
            "falcon-4.4.0.data/data/share/a.py": "",
            "falcon-4.4.0.dist-info/licenses/LICENSE": "Apache",
            "falcon-4.4.0.dist-info/LICENSE.txt": "Apache, too",
        },
    )
    others = {
        name: text
        for name, text in engine.files([made]).items()
        if not name.startswith("policy-engine/spark_elastic/")
    }
    assert list(others) == [
        "policy-engine/falcon-4.4.0.dist-info/LICENSE.txt",
        "policy-engine/falcon-4.4.0.dist-info/METADATA",
        "policy-engine/falcon-4.4.0.dist-info/licenses/LICENSE",
        "policy-engine/falcon/__init__.py",
    ]
    assert others["policy-engine/falcon/__init__.py"] == b"a = 1"


def test_the_notice_names_each_package_with_its_licence(tmp_path: Path) -> None:
    wheels = [
        wheel(tmp_path, "b", "2", {}, "License: MIT\nHome-page: https://b.example\n"),
        wheel(tmp_path, "A", "1", {}, "License-Expression: PSF-2.0\nProject-URL: Home, https://a.example\n"),
        wheel(tmp_path, "c", "3", {}, "Classifier: License :: OSI Approved :: BSD License\n"),
        wheel(tmp_path, "d", "4", {}),
    ]
    assert engine.notice(engine.packages(wheels)).splitlines()[-4:] == [
        "  A 1, PSF-2.0, https://a.example",
        "  b 2, MIT, https://b.example",
        "  c 3, BSD License, no address",
        "  d 4, UNKNOWN, no address",
    ]


def test_what_cannot_be_fetched_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"a-package-of-nobody==1 --hash=sha256:{'0' * 64}\n")
    monkeypatch.setattr(engine, "REQUIREMENTS", requirements)
    monkeypatch.setenv("SPARK_ELASTIC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(FetchError, match=r"cannot fetch what requirements\.txt pins\n.*a-package-of-nobody"):
        engine.download()
    assert list((tmp_path / "cache" / "engine").iterdir()) == []


def test_wheels_with_the_pinned_hash_are_fetched_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = wheel(tmp_path, "ours", "1", {"ours.py": ""})
    made_hash = hashlib.sha256(made.read_bytes()).hexdigest()
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"ours==1 --hash=sha256:{made_hash}\n")
    monkeypatch.setattr(engine, "REQUIREMENTS", requirements)
    monkeypatch.setenv("SPARK_ELASTIC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    (first,) = engine.download()
    assert first.read_bytes() == made.read_bytes()
    made.unlink()
    assert engine.download() == [first]
