"""Tests that Flink, which loses a TaskManager meanwhile, writes what a batch of Spark returns."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from integration.bench.nexmark import flink
from integration.bench.nexmark.load import Trial
from integration.bench.nexmark.schedule import Schedule
from integration.bench.nexmark.streams import exact
from integration.streaming.driver import driver

pytestmark = pytest.mark.integration

CHECKOUT = Path(__file__).parents[3]
SHORT = Schedule(rates=(1_000, 3_000), step_s=10, settle_s=5)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_query_in_flink_writes_what_a_batch_returns(tmp_path: Path) -> None:
    found = flink.run(tmp_path / "run", "q5", Trial(schedule=SHORT, workers=3, wait_us=100))
    assert exact(found["output"]), found["output"]
    # Two at first, and the one that joins.
    assert found["executors"]["most"] == 3
    assert 0 < found["late_ms"]["p50"] <= found["late_ms"]["p99"]
    with driver(tmp_path / "check") as jvm, jvm.session({"spark.sql.shuffle.partitions": "2"}) as spark:
        more = flink.compare(spark, "q5", 2 * SHORT.arrived[-1], tmp_path / "run" / "output")
    assert more["missing"] > 0


def test_a_query_that_flink_does_not_run_is_refused() -> None:
    command = [sys.executable, "-m", "integration.bench.nexmark", "--variants", "all", "--queries", "q5,q7"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("error: q7: Flink runs q1, q3, q5, q8, q11 only")
