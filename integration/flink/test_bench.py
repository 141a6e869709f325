"""Tests that the comparison of rescales with Flink's runs both systems, and gives all of its figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from integration.spark_minor import MOVES_STATE

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not MOVES_STATE, reason="the count of its stateful query cannot be changed"),
]

CHECKOUT = Path(__file__).parents[2]
SYSTEMS = ("spark", "flink")
ROUNDS = {"steady": 1, "join": 2, "stop": 1, "kill": 1}


def test_each_case_has_gaps_of_both_systems() -> None:
    # With --only it leaves the result of the last whole run alone.
    only = [word for system in SYSTEMS for word in ("--only", system)]
    command = [sys.executable, "-m", "integration.bench.flink", "--quick", "--sizes", "5", *only]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=840, check=False)
    assert done.returncode == 0, done.stderr
    *rows, last = done.stdout.splitlines()
    assert [row.split("|")[1].strip() for row in rows[2:]] == [f"5 MB, {case}" for case in ROUNDS]
    measured = json.loads(last)["sizes"]["5"]
    for system in SYSTEMS:
        assert measured[system]["state_mb"] >= 4
        for case, rounds in ROUNDS.items():
            figures = measured[system][case]
            assert figures["rounds"] == rounds
            assert (
                0 < figures["gap_ms"]["p50"] <= figures["new_gap_ms"]["p50"] <= figures["new_gap_ms"]["max"]
            )
            if case != "steady":
                assert figures["not_in_force"] == 0
                assert figures["in_force_ms"]["p50"] > 0
    assert set(measured["spark_to_flink"]) == set(ROUNDS)
