"""Tests of the live view of an application in a terminal."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from spark_elastic.core import events as ev
from spark_elastic.core.events import OffsetsBehind
from spark_elastic.installation import Spark
from spark_elastic.lacks import lacks_of
from spark_elastic_tools.live import Documents, Look, draw_snapshot
from spark_elastic_tools.recorded import Recorded
from tests.unit.tools.live.recorded import event, header, progress, read, snapshot, started, submitted


def drawn(recorded: Recorded) -> str:
    return rendered(Look(recorded, past=10).take())


def rendered(snapshot: Documents) -> str:
    console = Console(file=StringIO(), width=160)
    console.print(draw_snapshot(snapshot))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def recorded_of(*behind: OffsetsBehind | None) -> Recorded:
    recorded = read(header(), snapshot())
    for number, offsets in enumerate(behind):
        name = f"query-{number}"
        read(submitted(name), started(name), progress(name, partitions=2, behind=offsets), to=recorded)
    return recorded


def test_a_query_says_how_far_its_furthest_partition_is_behind() -> None:
    shown = drawn(recorded_of(OffsetsBehind(avg=1700.5, max=2345, min=1056), None))
    assert "offsets behind" in shown
    (knowing,) = [line for line in shown.splitlines() if "query-0" in line]
    (other,) = [line for line in shown.splitlines() if "query-1" in line]
    assert "2,345" in knowing
    assert "–" in other


def test_parts_that_are_off_are_said_with_their_reason() -> None:
    told = snapshot(parts={"savepoints": "", "rescales of state": "no [red]Mover[/red]"})
    shown = drawn(read(header(), told))
    assert "without rescales of state: no [red]Mover[/red]" in shown
    assert "savepoints" not in shown


def test_what_an_earlier_spark_is_without_is_said_once() -> None:
    told = snapshot(parts={"rescales of state": "no Mover"}, spark="3.5.9")
    words = " ".join(drawn(read(header(), told)).split())
    _, *lacks = lacks_of(Spark("3.5.9"))
    said = ["rescales of state: no Mover", *map(str, lacks)]
    assert lacks
    assert words.endswith(" ".join(f"without {one}" for one in said))


def test_an_excluded_executor_is_shown_with_the_reason() -> None:
    recorded = read(header(), snapshot())
    read(event(ev.ExecutorExcluded, executor="1", reason="2 tasks failed on it"), to=recorded)
    assert "executor 1 excluded: 2 tasks failed on it" in drawn(recorded)
    read(event(ev.ExecutorDecommissioning, executor="1"), to=recorded)
    assert "executor 1 decommissioning" in drawn(recorded)


def test_where_no_source_says_it_there_is_no_column_for_it() -> None:
    assert "offsets behind" not in drawn(recorded_of(None, None))


@pytest.mark.parametrize(("mode", "there"), [("adaptive", True), ("reactive", False)])
def test_bounds_are_there_in_adaptive_mode(mode: str, there: bool) -> None:
    recorded = read(
        header({"spark.elastic.schedulerMode": mode, "spark.elastic.query.counts.upperBound": "4"}),
        snapshot(),
        submitted("counts"),
    )
    assert ("1–4" in drawn(recorded)) == there


def test_what_comes_from_elsewhere_moves_no_cursor_and_is_no_markup() -> None:
    recorded = read(header(), snapshot(), submitted("\x1b[2J[red]q[/red]"))
    shown = drawn(recorded)
    assert "\x1b" not in shown
    assert "[red]q[/red]" in shown


def test_below_the_table_is_said_which_queries_have_settings_of_their_own() -> None:
    conf = {
        "spark.elastic.query.leg*.schedulerMode": "off",
        "spark.elastic.query.counts.schedulerMode": "adaptive",
    }
    recorded = read(header(conf), snapshot(), submitted("legacy"), submitted("counts"), submitted("other"))
    shown = drawn(recorded)
    assert "legacy has settings of its own: schedulerMode is off" in shown
    assert "counts has settings of its own: schedulerMode is adaptive, " in shown
    assert "other has" not in shown
    assert shown.count("1–32768") == 1


def test_a_custom_policy_without_an_answer_is_named_with_its_error() -> None:
    policy = {"name": "my.scaling:LateNight", "error": "LookupError: [red]no[/red]"}
    answering = {"name": "other", "error": None}
    recorded = read(header(), snapshot())
    overview = {**recorded.get("/overview"), "customPolicies": [policy, answering]}
    shown = rendered(Documents(overview, ()))
    assert "no answer from my.scaling:LateNight: LookupError: [red]no[/red]" in shown
    assert "other" not in shown
