"""Tests of the demonstration's summary."""

from __future__ import annotations

import json

from rich.console import Console

from spark_elastic_lab.demo.check import Check
from spark_elastic_lab.demo.chronicle import Chronicle
from spark_elastic_lab.demo.steps import Deed, Outcome, Step, Trend
from spark_elastic_lab.demo.summary import Summary, draw_summary, summarize
from tests.unit.lab.demo.facts import added, progress, report, snapshot, submitted


def summary(*, ok: bool = True) -> Summary:
    chronicle = Chronicle()
    for event in (
        snapshot(),
        added("0", 100),
        submitted("q", stateful=True),
        progress("q", 0, 1000, 1),
        added("1", 12_000),
        progress("q", 1, 13_500, 2),
    ):
        chronicle.follow(event)
    chronicle.order(report("q", "Runs with 2 partitions instead of 1.", reason="rescaled"))
    start = Step(title="start", deed=Deed.START, at_s=0, slots=1)
    add = Step(title="add", deed=Deed.ADD, at_s=10, slots=2)
    return summarize(
        version="1.2.3",
        chronicle=chronicle,
        outcomes=[
            Outcome(start, 900, executor="0", executor_at=100, in_force={"q": 1000}, settled=1300),
            Outcome(add, 10_900, executor="1", executor_at=12_000, in_force={"q": 13_500}, settled=13_900),
        ],
        outputs={"q": (1300, 11_300, 13_800, 14_300)},
        ended=20_000,
        comparison={"q": {"rows_in": 9, "rows_out": 7, "rows_expected": 7, "missing": 0, "surplus": 0}},
        checks=[Check(name="all is well", ok=True, found="yes"), Check(name="really", ok=ok, found="so")],
    )


def test_times_count_from_the_executors_change_and_the_start_has_none() -> None:
    start, add = summary().steps
    assert (start.executor_ms, start.effects[0].in_force_ms) == (None, None)
    assert (add.at_ms, add.executor_ms) == (10_000, 1100)
    assert (add.effects[0].in_force_ms, add.effects[0].output_gap_ms) == (1500, 2500)


def test_a_step_that_leads_to_a_trend_has_the_slots_that_it_led_to() -> None:
    start = Step(title="start", deed=Deed.START, at_s=0, slots=Trend.FEWER)
    outcome = Outcome(start, 900, executor="4", executor_at=31_000, before=5, after=2, settled=60_000)
    (step,) = summarize(
        version="1.2.3",
        chronicle=Chronicle(),
        outcomes=[outcome],
        outputs={},
        ended=70_000,
        comparison={},
        checks=[],
    ).steps
    assert (step.slots, step.executor_ms) == (2, 30_100)


def test_a_failed_check_fails_the_whole() -> None:
    assert summary().ok
    assert not summary(ok=False).ok


def test_the_json_says_what_the_table_says() -> None:
    written = json.loads(summary().to_json())
    assert written["ok"] is True
    assert written["queries"][0]["rescales"] == 1
    assert written["steps"][1]["effects"][0] == {"query": "q", "in_force_ms": 1500, "output_gap_ms": 2500}
    console = Console(record=True, width=200, file=None)
    with console.capture() as captured:
        console.print(draw_summary(summary()))
    assert "1,500 ms" in captured.get()
    assert "rescales" in captured.get()
    assert "every check holds" in captured.get()
