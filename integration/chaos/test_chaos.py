"""Twenty faults, always the same: nothing is lost, nothing stays still, and everything is put right."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.chaos.plan import Plan
from integration.chaos.run import chosen, run

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(1800)]

SEED, FAULTS = 1, 20


def test_twenty_faults_break_nothing(tmp_path: Path) -> None:
    plan = Plan(SEED)
    result = run(tmp_path / "chaos", SEED, chosen(plan, FAULTS), plan)
    assert result["failures"] == []
    assert result["unknown_errors"] == {}
    assert result["left_over"] == []
    assert result["faults"] >= FAULTS / 2
    assert result["rows_compared"]
