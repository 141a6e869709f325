"""Tests of a wheel with the jar for one Spark."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from build_jar import CHECKOUT
from integration.jar.each_jar import INSTALLED, jar_for

pytestmark = [pytest.mark.integration]


def build(only: str, into: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into)]
    environment = {**os.environ, "SPARK_ELASTIC_ONLY": only}
    return subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True)


def test_a_wheel_can_have_the_jar_for_one_spark(tmp_path: Path) -> None:
    jar = jar_for(INSTALLED)
    done = build(INSTALLED.name, tmp_path)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    jars = [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".jar")]
    assert jars == [f"spark_elastic/jars/{jar.name}"]


def test_no_wheel_is_built_for_a_spark_that_is_not_supported(tmp_path: Path) -> None:
    done = build("9.9", tmp_path)
    assert done.returncode != 0
    assert "no jar is made for Spark 9.9, only for 4.2, 4.3" in done.stderr
    assert list(tmp_path.iterdir()) == []
