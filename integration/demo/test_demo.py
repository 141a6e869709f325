"""Tests the demonstration as a user starts it: in each mode it ends on its own, and every check passes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spark_elastic_lab.demo.steps import PLAYS, Mode

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

# Two cores that other processes use, too.
ENDS_S = 840.0


@pytest.mark.parametrize("mode", Mode)
def test_every_check_holds(mode: Mode, tmp_path: Path) -> None:
    told = tmp_path / "summary.json"
    options = ["--mode", mode.value, "--plain", "--json", str(told)]
    command = [sys.executable, "-m", "spark_elastic_tools.cli", "demo", *options]
    result = subprocess.run(command, capture_output=True, text=True, timeout=ENDS_S, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    summary = json.loads(told.read_text())
    assert all(check["ok"] for check in summary["checks"])
    assert [step["title"] for step in summary["steps"]] == [step.title for step in PLAYS[mode].steps]
    # Outside a terminal, the events are printed line by line.
    for step in PLAYS[mode].steps:
        assert f"scenario: {step.title}\n" in result.stdout
