"""Tests that the bench of the scheduler runs, and prints what other programs read."""

from __future__ import annotations

import json

import pytest

from integration.bench import core

pytestmark = pytest.mark.long


def test_a_quick_run_prints_its_figures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["core", "--quick"])
    assert core.main() == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["executors"] > result["queries"] > 0
    assert result["events_per_s"] > 0
    assert 0 < result["decision_ms"]["p50"] <= result["decision_ms"]["p99"]
    assert 0 < result["policy_ms"]["p50"] <= result["policy_ms"]["p99"]
    assert isinstance(result["rss_growth_mb"], float)
    for mode in ("reactive", "adaptive"):
        kinds = set(result["modes"][mode]["events"])
        assert kinds >= {
            "ExecutorAdded",
            "ExecutorRemoved",
            "ExecutorUsage",
            "StageCompleted",
            "QueryProgress",
        }
