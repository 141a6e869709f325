"""Sixty faults, always the same: nothing is lost, no query stalls, and everything recovers.

In one run everything must recover after each step, in another only after every fifth. In one, plain Spark
has begun the checkpoints, and their state is converted again and again.

The steps in `scripts` are those that revealed defects: an executor that was missing permanently; a rescale
that failed and was not rolled back; a number of slots that was not checked against the executors.

With restarts, no query may end at all. Without them, none may end that its twin of plain Spark survives: the
twin gets the same faults, and must survive them for the comparison to prove something.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.chaos.network import why_not
from integration.chaos.plan import Plan, Step, of_mode, read_steps
from integration.chaos.report import broken
from integration.chaos.run import chosen, run

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SEED, FAULTS, FAULTS_WITHOUT_RESTARTS, FAULTS_OF_CONVERSIONS = 1, 60, 10, 30
# Those that stop queries, whose state is converted at the next start, and those that meet conversions.
CONVERTING = (
    "query_stopped",
    "query_ended",
    "driver_killed",
    "executor_killed",
    "worker_killed",
    "storage_fails",
    "storage_slow",
)
SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.jsonl"))
_STEP_S, _REST_S = 60, 600


def limit(faults: int) -> pytest.MarkDecorator:
    """Return the timeout for this number of faults."""
    return pytest.mark.timeout(_REST_S + faults * _STEP_S)


def check(folder: Path, plan: Plan, steps: Iterator[Step], least: int) -> dict[str, Any]:
    """Run faults and return the result; at least `least` of them must hit something."""
    result = run(folder, plan, steps)
    assert not broken(result), result
    assert result["faults"] >= least
    assert result["rows_compared"]
    return result


@limit(FAULTS)
@pytest.mark.parametrize("burst", [1, 5])
def test_faults_break_nothing(tmp_path: Path, burst: int) -> None:
    plan = Plan(SEED, links=why_not() is None, burst=burst)
    check(tmp_path / "chaos", plan, chosen(plan, FAULTS), FAULTS // 2)


@limit(FAULTS_OF_CONVERSIONS)
def test_faults_break_no_conversion(tmp_path: Path) -> None:
    plan = Plan(SEED, CONVERTING, links=why_not() is None, mode="old")
    steps = chosen(plan, FAULTS_OF_CONVERSIONS)
    result = check(tmp_path / "chaos", plan, steps, FAULTS_OF_CONVERSIONS // 2)
    # The three queries that plain Spark has begun in another form, and some of them again.
    assert result["conversions"] > 3


@limit(10)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_steps_that_a_defect_needed_to_show_break_nothing(tmp_path: Path, script: Path) -> None:
    steps = list(read_steps(script))
    check(tmp_path / "chaos", Plan(SEED, links=why_not() is None), iter(steps), len(steps))


@limit(2 * FAULTS_WITHOUT_RESTARTS)
def test_faults_end_no_query_that_its_plain_twin_survives(tmp_path: Path) -> None:
    links = why_not() is None
    plan = Plan(SEED, restarts=False, links=links)
    steps = chosen(plan, FAULTS_WITHOUT_RESTARTS)
    result = check(tmp_path / "chaos", plan, steps, FAULTS_WITHOUT_RESTARTS // 2)
    common = list(of_mode(read_steps(Path(result["script"])), "plain"))
    assert common
    check(tmp_path / "plain", Plan(SEED, links=links, mode="plain"), iter(common), len(common) // 2)
