"""Tests of the report on a session: from a driver that is served, and where there is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from attrs import frozen

import spark_elastic
from spark_elastic_tools.client import Driver, NoDriver
from spark_elastic_tools.report import Report, Table, report_of
from tests.unit.tools.cli.served import served


@frozen
class Documents:
    """A source with these documents."""

    documents: Mapping[str, Any]

    def get(self, path: str) -> Any:
        return self.documents[path]


QUERY = {
    "id": "0a-1", "name": "counts", "state": "Executing", "partitions": 3, "rescales": 1, "restarts": 0,
    "lastBatch": {"durationMs": 500}, "lastDecision": {"message": "Scale 2 → 3 partitions"},
}  # fmt: skip
RESCALE = {
    "status": "completed", "started": 1_000_000, "ended": 1_005_000, "partitionsBefore": 2,
    "partitionsAfter": 3, "preparedMs": 35_000, "pausedMs": 200,
}  # fmt: skip
BATCHES = [
    *({"at": 990_000 + 1_000 * n, "durationMs": 900} for n in range(10)),
    {"at": 1_005_000, "durationMs": 2_300},
    *({"at": 1_008_000 + 1_000 * n, "durationMs": 600} for n in range(3)),
]
STAGES = [
    {"question": "InitialCount", "before": 200, "after": 8, "message": "8 partitions for 3 MiB"},
    {"question": "Ranges", "before": 200, "after": 2, "message": "2 tasks for 3 MiB"},
    {"question": "Ranges", "before": 5, "after": 5, "message": "5 tasks for 3 MiB"},
]
SOURCE = Documents(
    {
        "/overview": {
            "version": "0.1.0", "sparkVersion": "4.2.0", "mode": "reactive", "executors": [1, 2],
            "slots": {"now": 4}, "adviseOnly": False, "policyRestarts": 0,
        },
        "/queries": {"queries": [QUERY]},
        "/queries/0a-1/rescales": {"rescales": [RESCALE, {**RESCALE, "status": "failed"}]},
        "/queries/0a-1/timeline": {"batches": BATCHES},
        "/stages": {"stages": STAGES, "unanswered": 2},
        "/decisions?limit=10": {
            "decisions": [{"at": 0, "name": None, "query": None, "message": "Use <all> slots"}]
        },
    }
)  # fmt: skip


def test_a_report_tells_what_was_decided_and_what_came_of_it() -> None:
    assert (
        str(report_of(SOURCE))
        == """\
spark-elastic 0.1.0 on Spark 4.2.0, reactive mode: 4 slots on 2 executors
2 questions about batch stages were left to Spark's own rules.

Streaming queries
  query   state      partitions  micro-batch  rescales          restarts  last decision
  counts  Executing  3           500 ms       1, paused 400 ms  0         Scale 2 → 3 partitions

Rescales
  query   partitions  state copied  pause   micro-batches
  counts  2 → 3       35 s          200 ms  900 ms → 600 ms

Batch stages
  decision      partitions or tasks  why
  all 2 of 3    400 → 10
  Ranges        200 → 2              2 tasks for 3 MiB
  InitialCount  200 → 8              8 partitions for 3 MiB

Latest decisions
  at (UTC)    why
  00:00:00    Use <all> slots"""
    )


def test_a_notebook_gets_the_same_as_html() -> None:
    shown = report_of(SOURCE)._repr_html_()
    assert shown.count("<table>") == 4
    assert '<td style="text-align: left; vertical-align: top">900 ms → 600 ms</td>' in shown
    assert "Use &lt;all&gt; slots" in shown
    assert "<script" not in shown


def test_a_long_reason_is_cut_in_the_text_alone() -> None:
    found = Report((), (Table("T", ("a", "b"), (("x", "y" * 300),)),))
    assert max(map(len, str(found).splitlines())) == 100
    assert "y" * 300 in found._repr_html_()


def test_a_driver_is_asked() -> None:
    with served() as driver:
        found = report_of(Driver(driver.url))
    assert "adaptive mode: 4 slots on 2 executors" in found.lines[0]
    assert found.tables[0].title == "Streaming queries"


@frozen
class Context:
    uiWebUrl: str | None  # Spark's name


@frozen
class Session:
    sparkContext: Context  # Spark's name


def test_without_a_ui_it_says_what_to_set() -> None:
    session: Any = Session(Context(None))
    with pytest.raises(NoDriver, match=r"set spark\.ui\.enabled to true"):
        spark_elastic.report(session)
