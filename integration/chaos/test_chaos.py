"""Sixty faults, always the same: nothing is lost, nothing stays still, and everything is put right."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.chaos.network import why_not
from integration.chaos.plan import Plan
from integration.chaos.report import broken
from integration.chaos.run import chosen, run

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SEED, FAULTS, FAULTS_WITHOUT_RESTARTS = 1, 60, 10
_STEP_S, _REST_S = 60, 600


def limit(faults: int) -> pytest.MarkDecorator:
    """Return how long so many faults may take."""
    return pytest.mark.timeout(_REST_S + faults * _STEP_S)


def check(folder: Path, faults: int, *, restarts: bool = True) -> None:
    plan = Plan(SEED, restarts=restarts, links=why_not() is None)
    result = run(folder, plan, chosen(plan, faults))
    assert not broken(result), result
    assert result["faults"] >= faults / 2
    assert result["rows_compared"]


@limit(FAULTS)
def test_faults_break_nothing(tmp_path: Path) -> None:
    check(tmp_path / "chaos", FAULTS)


@limit(FAULTS_WITHOUT_RESTARTS)
def test_faults_end_no_query_that_fails_for_good(tmp_path: Path) -> None:
    check(tmp_path / "chaos", FAULTS_WITHOUT_RESTARTS, restarts=False)
