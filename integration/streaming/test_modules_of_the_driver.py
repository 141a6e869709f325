"""Tests that the policy process does not import modules from the driver's working directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.streaming.launch import CHECKOUT, WITH_PLUGIN, submitted
from integration.streaming.waiting import PATIENCE_S

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


def test_an_empty_part_of_the_path_of_modules_is_not_the_working_directory(tmp_path: Path) -> None:
    folder, journal, taken = tmp_path / "driver", tmp_path / "journal", tmp_path / "taken"
    folder.mkdir()
    # The application and PySpark do not import it, but the policy does.
    (folder / "attrs.py").write_text(f"open({str(taken)!r}, 'w').close()\nraise SystemExit(77)\n")
    conf = {**WITH_PLUGIN, "spark.elastic.journal.dir": str(journal)}
    path = {"PYTHONPATH": f":{CHECKOUT}"}
    with submitted("endings.py", ["query_left"], folder, conf, env=path) as process:
        assert process.wait(PATIENCE_S) == 0, process.log_tail()
    assert not taken.exists()
    assert list(journal.glob("*.jsonl"))
