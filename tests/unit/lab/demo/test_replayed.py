"""Tests of the demonstration's check that its journal can be replayed."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_elastic_lab.demo.run import check_replay
from tests.unit.runtime.short_run import short_run


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return short_run(tmp_path / "journal")


def test_a_journal_that_comes_to_the_same_decisions_holds(journal: Path) -> None:
    found = check_replay(journal)
    assert found.ok
    assert "2 events" in found.found


def test_another_decision_is_named_with_its_place(journal: Path) -> None:
    journal.write_text(journal.read_text().replace('"start_wait_ms":10000', '"start_wait_ms":5'))
    found = check_replay(journal)
    assert (found.ok, found.found) == (False, f"different at {journal}:2")


def test_without_a_journal_nothing_is_shown(tmp_path: Path) -> None:
    found = check_replay(tmp_path / "none")
    assert not found.ok
    assert "No such file" in found.found
