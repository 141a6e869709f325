"""Tests that with the wheel alone, in a fresh environment, the documented commands run the demonstration."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from integration.jar.wheel import build_wheel
from spark_versions import SparkVersion, supported
from tests.unit.docs.pages import read

# Jars that are not cached are compiled; packages that are not in pip's cache are downloaded.
pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(1800)]

STEP_S = 840.0
(INSTALL, DEMO) = next(
    block.text.splitlines()
    for block in read("docs/getting-started.md").blocks
    if block.text.startswith("pip install 'spark-elastic[cli,demo]'")
)
# The default Spark, and the oldest one that pip installs.
SPARKS = (supported()[0], next(row for row in supported() if row.minor == "3.5" and row.on_pypi))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel, built as `make wheel` does."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Mapping[str, str]]:
    """Return the environment of an active new virtual environment, without anything of this checkout."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=True, symlinks=True)
    ours = ("SPARK_", "PYSPARK_", "PYTHON", "VIRTUAL_ENV")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(ours)}
    yield {**kept, "PATH": os.pathsep.join((str(home / "bin"), os.environ["PATH"]))}
    shutil.rmtree(home)  # a gigabyte


@pytest.mark.parametrize("row", SPARKS, ids=lambda row: row.minor)
def test_the_demo_passes_where_nothing_else_is_installed(
    wheel: Path, fresh: Mapping[str, str], row: SparkVersion, tmp_path: Path
) -> None:
    def type_in(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", line],
            env=fresh,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=STEP_S,
            check=False,
        )

    assert INSTALL.endswith(" pyspark")
    installed = type_in(f"{INSTALL.replace('spark-elastic', str(wheel))}=={row.pyspark}")
    assert installed.returncode == 0, installed.stdout + installed.stderr
    shown = type_in(f"{DEMO} --plain --json summary.json")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert all(check["ok"] for check in summary["checks"])
    assert len(summary["checks"]) > len(summary["steps"])
    assert str(tmp_path / "venv") in type_in("spark-elastic jar").stdout
