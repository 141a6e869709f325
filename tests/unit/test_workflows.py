"""Tests that what runs on GitHub is well formed, and does what the Makefile and .ci/run do here."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from spark_versions import supported

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def jobs(name: str) -> dict[str, Any]:
    found = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text())["jobs"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("schema", "file"),
    [*(("github-workflows", path) for path in WORKFLOWS), ("dependabot", ROOT / ".github/dependabot.yml")],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_file_has_the_form_that_github_wants(schema: str, file: Path) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(file)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda path: path.name)
def test_the_makefile_has_each_target(file: Path) -> None:
    asked = re.findall(r"\bmake ([a-z-]+)", file.read_text())
    assert asked
    assert set(asked) <= TARGETS


def test_each_other_spark_is_tested_in_a_job_of_its_own() -> None:
    assert jobs("checks.yml")["spark"]["strategy"]["matrix"]["spark"] == [row.name for row in supported()[1:]]


def test_the_oldest_python_runs_all_of_ci() -> None:
    (line,) = re.findall(r'^requires-python = ">=(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    steps = jobs("checks.yml")["all"]["steps"]
    assert [step["with"]["python-version"] for step in steps if "python-version" in step.get("with", {})] == [
        line
    ]
    assert steps[-1]["run"] == ".ci/run"


def test_nothing_is_published_that_was_not_checked() -> None:
    found = jobs("release.yml")
    assert {name for name, job in found.items() if job.get("needs") != "build"} == {"build"}
    assert "make release-check" in [step.get("run") for step in found["build"]["steps"]]
