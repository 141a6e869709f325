"""Tests of the jar's own `__main__.py`: which Python runs the policy engine, and which copy of it."""

from __future__ import annotations

import ast
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.jar.packed import START, VERSION, jar

_RUNS = "print('engine of the jar')\n"
_OLD = """\
import runpy, sys
sys.version_info = (3, 9, 18, "final", 0)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def with_engine(folder: Path) -> Path:
    return jar(
        folder,
        {
            "policy-engine/spark_elastic/__init__.py": "",
            "policy-engine/spark_elastic/runtime/__init__.py": "",
            "policy-engine/spark_elastic/runtime/__main__.py": _RUNS,
        },
    )


def installed(folder: Path, version: str) -> Path:
    """Write an installation like pip's; return the folder to put on the path."""
    package = folder / "site" / "spark_elastic"
    (package / "runtime").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "runtime" / "__init__.py").touch()
    (package / "runtime" / "__main__.py").write_text("print('installed engine')\n")
    described = folder / "site" / f"spark_elastic-{version}.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(f"Metadata-Version: 2.4\nName: spark-elastic\nVersion: {version}\n")
    return package.parent


def started(
    path: Path, *, python: list[str] | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Start it as the driver does, with only the named packages installed."""
    return subprocess.run(
        [*(python or [sys.executable, "-S"]), str(path), "spark_elastic.runtime"], cwd=path.parent,
        env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip


def program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def too_old(folder: Path) -> list[str]:
    """Return a command that runs a file as Python 3.9 would."""
    folder.mkdir(exist_ok=True)
    (folder / "old.py").write_text(_OLD)
    return [sys.executable, "-S", str(folder / "old.py")]


def test_the_engine_in_the_jar_runs_where_none_is_installed(tmp_path: Path) -> None:
    run = started(with_engine(tmp_path))
    assert (run.returncode, run.stdout, run.stderr) == (0, "engine of the jar\n", "")


def test_an_installed_engine_of_the_same_version_is_run_instead(tmp_path: Path) -> None:
    run = started(with_engine(tmp_path), PYTHONPATH=str(installed(tmp_path, VERSION)))
    assert (run.returncode, run.stdout, run.stderr) == (0, "installed engine\n", "")


def test_an_installed_engine_of_another_version_is_named_and_not_run(tmp_path: Path) -> None:
    run = started(with_engine(tmp_path), PYTHONPATH=str(installed(tmp_path, "1.2.2")))
    assert (run.returncode, run.stdout) == (0, "engine of the jar\n")
    (line,) = run.stderr.splitlines()
    assert line.startswith(f"INFO {sys.executable} (Python 3.")
    assert line.endswith(
        "has spark-elastic 1.2.2 and the jar is 1.2.3: runs the policy engine that is in the jar"
    )


def test_a_jar_without_the_engine_runs_the_installed_one_whatever_its_version(tmp_path: Path) -> None:
    # Shim and engine exchange their versions, and the engine reports a mismatch.
    run = started(jar(tmp_path, {}), PYTHONPATH=str(installed(tmp_path, "1.2.2")))
    assert (run.returncode, run.stdout, run.stderr) == (0, "installed engine\n", "")


def test_where_there_is_no_engine_at_all_one_line_says_what_to_type(tmp_path: Path) -> None:
    run = started(jar(tmp_path, {}))
    assert run.returncode == 5
    (line,) = run.stderr.splitlines()
    assert "has no spark-elastic, and this jar has no policy engine in it" in line
    assert f"type `{sys.executable} -m pip install spark-elastic=={VERSION}`, or take the jar from" in line


def test_nothing_else_of_the_jar_can_be_imported(tmp_path: Path) -> None:
    files = {
        "policy-engine/spark_elastic/__init__.py": "",
        "policy-engine/spark_elastic/runtime.py": "import org",
    }
    run = started(jar(tmp_path, {**files, "org/__init__.py": ""}))
    assert "No module named 'org'" in run.stderr


def test_a_python_that_is_too_old_hands_over_to_the_newest_one_on_path(tmp_path: Path) -> None:
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    this = shlex.quote(sys.executable)
    program(bin_folder / "python3.10", "exit 1")
    program(bin_folder / "python3.11", f'exec {this} -S "$@"')
    # One like pyenv's shim for a version that is not installed, and one that is a folder.
    program(bin_folder / "python3.12", "echo not installed; exit 127")
    (bin_folder / "python3.13").mkdir()
    run = started(with_engine(tmp_path), python=too_old(tmp_path / "old"), PATH=str(bin_folder))
    assert (run.returncode, run.stdout) == (0, "engine of the jar\n")
    (line,) = run.stderr.splitlines()
    assert f"(Python 3.9.18) is too old: runs with {bin_folder}/python3.11" in line


@pytest.mark.parametrize("path", ["", ".", "bin"])
def test_a_python_that_is_too_old_says_so_if_it_is_alone(tmp_path: Path, path: str) -> None:
    # A relative entry of PATH depends on the driver's working directory, so its Pythons are not used.
    for folder in (tmp_path, tmp_path / "bin"):
        folder.mkdir(exist_ok=True)
        program(folder / "python3.12", f'exec {shlex.quote(sys.executable)} -S "$@"')
    run = started(with_engine(tmp_path), python=too_old(tmp_path / "old"), PATH=path)
    assert (run.returncode, run.stdout) == (5, "")
    (line,) = run.stderr.splitlines()
    assert "(Python 3.9.18) is too old: the policy engine needs Python 3.10 or later" in line
    assert line.endswith("install it, or name it in spark.elastic.python")


def test_every_python_can_read_it() -> None:
    """Syntax newer than Python 2.7 would cause a syntax error instead of a helpful message."""
    text = START.read_text(encoding="utf-8")
    assert text.isascii()
    newer = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.Starred, ast.FunctionDef, ast.AsyncFunctionDef)
    assert [type(node).__name__ for node in ast.walk(ast.parse(text)) if isinstance(node, newer)] == []
