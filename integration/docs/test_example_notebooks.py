"""Tests that the example notebooks run, cell by cell, and that their report shows what they are about."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from integration.docs.machine import Machine
from integration.docs.test_notebook import opened
from tests.unit.docs.pages import CHECKOUT

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

NOTEBOOKS = sorted((CHECKOUT / "docs" / "notebooks").glob("*.ipynb"))
SHOWS = {"batch": "Batch stages", "streaming": "Streaming queries"}
REPORT = "spark_elastic.report(spark)"


def cells(notebook: Path) -> list[str]:
    found = json.loads(notebook.read_text())["cells"]
    return ["".join(cell["source"]) for cell in found if cell["cell_type"] == "code"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_an_example_runs(machine: Machine, notebook: Path) -> None:
    # The report is read from the Spark UI, which the other tests do without.
    with (machine.home / "conf" / "spark-defaults.conf").open("a") as defaults:
        defaults.write("spark.ui.enabled true\nspark.ui.port 0\n")
    with opened(machine) as kernel:
        printed = ""
        for cell in cells(notebook):
            kernel.run(cell)
            if cell == REPORT:
                printed = kernel.run(f"print({REPORT})")
    assert printed.startswith("spark-elastic")
    assert f"\n{SHOWS[notebook.stem]}\n" in printed


def test_each_example_has_a_test_and_no_results() -> None:
    assert {path.stem for path in NOTEBOOKS} == set(SHOWS)
    for path in NOTEBOOKS:
        assert all(not cell.get("outputs") for cell in json.loads(path.read_text())["cells"])
