"""Tests of the checks that the demonstration makes of its application."""

from __future__ import annotations

import pytest

from spark_elastic.core.events import OffsetsBehind
from spark_elastic_lab.demo import check
from spark_elastic_lab.demo.chronicle import Chronicle
from spark_elastic_lab.demo.steps import Deed, Outcome, Step, Trend
from tests.unit.lab.demo.facts import progress, report, submitted, terminated

STEP = Step(title="add", deed=Deed.ADD, at_s=0, slots=2)


@pytest.mark.parametrize(("code", "ok"), [(0, True), (1, False), (-9, False), (None, False)])
def test_only_an_exit_code_of_0_is_an_end_of_its_own(code: int | None, ok: bool) -> None:
    assert check.check_application(code).ok is ok


@pytest.mark.parametrize(
    ("counts", "ok"),
    [
        ({"rows_in": 9, "rows_out": 7, "rows_expected": 7, "missing": 0, "surplus": 0}, True),
        ({"rows_in": 9, "rows_out": 7, "rows_expected": 7, "missing": 1, "surplus": 1}, False),
        ({"rows_in": 9, "rows_out": 8, "rows_expected": 7, "missing": 0, "surplus": 1}, False),
        ({"rows_in": 9, "rows_out": 0, "rows_expected": 0, "missing": 0, "surplus": 0}, False),
    ],
)
def test_rows_must_be_the_same_and_some(counts: dict[str, int], ok: bool) -> None:
    assert [found.ok for found in check.check_rows(["q"], {"q": counts})] == [ok]


def test_what_could_not_be_compared_does_not_hold() -> None:
    assert [found.ok for found in check.check_rows(["q"], {})] == [False]


def test_a_step_holds_only_once_it_has_settled() -> None:
    settled = Outcome(STEP, 1000, executor="1", executor_at=1500, settled=3500)
    late = Outcome(STEP, 1000, executor="1", executor_at=1500, timed_out=True)
    lost = Outcome(STEP, 1000, timed_out=True)
    found = [check.check_steps([STEP], [outcome], Chronicle())[0] for outcome in (settled, late, lost)]
    assert [(one.ok, one.found) for one in found] == [
        (True, "after 2.5 s"),
        (False, "no change of parallelism seen"),
        (False, "no change of executor seen"),
    ]
    assert not check.check_steps([STEP], [], Chronicle())[0].ok


def test_a_step_is_about_the_queries_whose_count_can_follow() -> None:
    chronicle = Chronicle()
    chronicle.follow(submitted("enrichment"))
    assert check.check_steps([STEP], [], chronicle)[0].name == "add: every query runs with 2"
    chronicle.follow(submitted("totals", stateful=True, moves_state=False))
    assert check.check_steps([STEP], [], chronicle)[0].name == "add: enrichment runs with 2"


def test_a_count_that_cannot_follow_is_kept_and_it_is_said_why() -> None:
    chronicle = Chronicle()
    chronicle.follow(submitted("enrichment"))
    assert check.check_kept(chronicle) == []
    chronicle.follow(submitted("totals", stateful=True, moves_state=False))
    for batch in (0, 1):
        chronicle.follow(progress("totals", batch, 100 * batch, 4))
    assert [one.ok for one in check.check_kept(chronicle)] == [False]
    chronicle.order(report("totals", "Starts with 4.", reason="start_for_growth"))
    assert check.check_kept(chronicle) == [
        check.Check(
            name="totals: keeps the count that it began with, and says why",
            ok=True,
            found="4 partitions in 2 batches; start_for_growth",
        )
    ]
    chronicle.follow(progress("totals", 2, 200, 3))
    assert [one.ok for one in check.check_kept(chronicle)] == [False]


def test_a_trend_holds_with_the_executors_before_and_after() -> None:
    step = Step(title="double", deed=Deed.LOAD, at_s=0, slots=Trend.MORE, interval_s=0.5)
    settled = Outcome(step, 1000, executor="1", executor_at=1500, before=2, after=4, settled=31_000)
    still = Outcome(step, 1000, before=2, after=2, timed_out=True)
    found = [check.check_steps([step], [outcome], Chronicle())[0] for outcome in (settled, still)]
    assert [(one.ok, one.found) for one in found] == [
        (True, "2 before, 4 now, after 30.0 s"),
        (False, "2 before, 2 now, which is not what was waited for, or did not last"),
    ]
    assert found[0].name == "double: more executors by themselves"


def test_a_failed_query_and_a_process_left_over_are_named() -> None:
    chronicle = Chronicle()
    chronicle.follow(submitted("q"))
    assert check.check_queries(chronicle).ok
    chronicle.follow(terminated("q", 5, "disk full"))
    assert check.check_queries(chronicle).found == "q: disk full"
    assert check.check_processes([]).ok
    assert check.check_processes(["worker-1"]).found == "worker-1"


@pytest.mark.parametrize(("read", "ok"), [([7, 7], True), ([7, 6], False), ([8, 8], False), ([], False)])
def test_the_topic_has_what_was_sent(read: list[int], ok: bool) -> None:
    comparison = {f"query-{number}": {"rows_in": rows} for number, rows in enumerate(read)}
    assert check.check_sent(7, comparison).ok is ok


def test_a_topic_to_which_nothing_was_sent_proves_nothing() -> None:
    assert not check.check_sent(0, {"totals": {"rows_in": 0}}).ok


def test_every_query_must_have_said_how_far_it_was_behind() -> None:
    chronicle = Chronicle()
    assert not check.check_offsets(chronicle).ok
    chronicle.follow(submitted("totals"))
    chronicle.follow(progress("totals", 0, 100, 1, behind=OffsetsBehind(avg=3.5, max=5, min=2)))
    chronicle.follow(progress("totals", 1, 200, 1, behind=OffsetsBehind(avg=0.0, max=0, min=0)))
    assert check.check_offsets(chronicle) == check.Check(
        name="every query says how far behind it is", ok=True, found="totals at most 5"
    )
    chronicle.follow(submitted("enrichment"))
    chronicle.follow(progress("enrichment", 0, 100, 1))
    assert not check.check_offsets(chronicle).ok
