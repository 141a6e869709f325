"""Tests of the differential run without Spark: what programs promise, how they are printed and shrunk."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings

from integration.differential import harness
from integration.differential.application import Pair
from integration.differential.compare import ENDED, Difference, differences
from integration.differential.finding import TIMES
from integration.differential.half import BATCH
from integration.differential.large import large_programs
from integration.differential.operators import FAILING, LOOSE, NARROW, PLACED, WITH_PYTHON
from integration.differential.program import Action, Chain, Kind, Program, Promise, Step
from integration.differential.run import Search
from integration.differential.script import body
from integration.differential.sources import SOURCES
from integration.differential.tables import table_programs
from integration.differential.wide import JOINS, WIDE

pytestmark = pytest.mark.long

OPERATORS = NARROW + WITH_PYTHON + WIDE + JOINS + PLACED + LOOSE + FAILING
KINDS = {kind.name: kind for kind in SOURCES + OPERATORS}
Result = Mapping[str, Any]


def step(name: str, **given_values: Any) -> Step:
    """Return a step of a kind; fields that are not given have their first possible value."""
    kind = KINDS[name]
    values = {key: given_values.get(key, first(values)) for key, values in kind.arguments.items()}
    return Step(kind, values, tuple(Chain((step("range"),)) for _ in range(kind.frames)))


def first(values: Any) -> Any:
    """Return the value that a strategy shrinks to."""
    return getattr(values, "elements", [getattr(values, "value", False)])[0]


def program(*names: str, action: str = "collected", **more: Any) -> Program:
    arguments = more.pop("arguments", {})
    return Program(Chain((step("range"), *map(step, names))), (Action(action, arguments),), **more)


def promise(*names: str) -> Promise:
    return program(*names).chain.promise


def test_every_kind_is_printed_as_python() -> None:
    assert len(KINDS) == len(SOURCES + OPERATORS)
    for kind in SOURCES:
        text = body(Program(Chain((step(kind.name),)), (Action("counted"),)))
        compile(text, kind.name, "exec")
    for kind in OPERATORS:
        text = body(program(kind.name))
        compile(text, kind.name, "exec")
        assert (
            not re.search(r"\{\w+\}", text.replace("{place}", "").replace("{OUT}", "")) or "spark.sql" in text
        )


def test_a_script_needs_nothing_of_ours() -> None:
    text = BATCH.script(program("distinct"), slots=4, title="what it shows")
    compile(text, "script", "exec")
    assert text.startswith('"""what it shows\n')
    assert "integration" not in text
    assert "local[4]" in text


def test_what_is_promised_follows_from_the_steps() -> None:
    assert promise("distinct", "join", "explode") is Promise.ROWS
    assert promise("sort", "filter", "column") is Promise.ORDER
    assert promise("sort", "distinct") is Promise.ROWS
    assert promise("limit of sorted") is Promise.ORDER
    assert promise("limit") is promise("ids", "column") is Promise.COUNT
    assert promise("limit", "filter") is promise("ids", "distinct") is promise("sample") is Promise.NOTHING
    assert promise("sample", "sort") is Promise.NOTHING
    loose = Step(KINDS["union"], {}, (Chain((step("range"), step("sample"))),))
    assert Chain((step("range"), loose)).promise is Promise.NOTHING


def test_sizes_add_up() -> None:
    rows = Chain((step("range", rows=1000),)).size.rows
    assert rows == 1000
    joined = Chain((step("files twice", rows=1000), step("join with itself"))).size
    assert joined.rows >= 4000


def compared(of: Program, plain: Result, elastic: Result) -> list[str]:
    """Return the kinds of differences of the first action, run twice with equal results."""
    both = [
        {"0 " + of.actions[0].name + more: found for more in ("", " again")} for found in (plain, elastic)
    ]
    return sorted({difference.kind for difference in differences(of, *both)})


def said(rows: str = "a", order: str = "a", count: int = 3, **more: Any) -> Result:
    return {"rows": rows, "order": order, "count": count, **more}


def test_rows_are_compared_where_they_are_promised() -> None:
    assert compared(program("distinct"), said(), said(order="b")) == []
    assert compared(program("distinct"), said(), said(rows="b")) == ["rows"]
    assert compared(program("limit"), said(), said(rows="b")) == []
    assert compared(program("limit"), said(), said(count=2)) == ["rows"]
    assert compared(program("sample"), said(), said(count=2)) == []


def test_order_is_compared_behind_a_sort() -> None:
    assert compared(program("sort"), said(), said(order="b")) == ["order"]
    assert compared(program("sort", "filter"), said(), said(order="b")) == ["order"]
    written = program("sort", action="written", arguments={"form": "csv", "by": None})
    assert compared(written, said(files=2), said(order="b", files=3)) == []


def test_the_first_rows_are_compared_behind_a_sort_alone() -> None:
    assert compared(program("distinct", action="taken"), said(), said(rows="b", order="b")) == []
    assert compared(program("sort", action="taken"), said(), said(rows="b", order="b")) == ["rows"]


def test_numbers_of_partitions_and_files_are_the_users() -> None:
    four, five = said(partitions=4, files=4), said(partitions=5, files=5)
    assert compared(program("distinct"), four, five) == []
    assert compared(program("repartition"), four, five) == ["partitions"]
    written, by_key = ({"form": "csv", "by": by} for by in (None, "k"))
    capped = (("spark.sql.files.maxRecordsPerFile", "50"),)
    for arguments, settings_, found in ((written, (), ["files"]), (by_key, (), []), (written, capped, [])):
        of = program("repartition", action="written", arguments=arguments, settings=settings_)
        assert compared(of, said(files=4), said(files=5)) == found


def repeated(plain: tuple[Result, Result], elastic: tuple[Result, Result]) -> list[str]:
    names = ("0 collected", "0 collected again")
    both = [dict(zip(names, found, strict=True)) for found in (plain, elastic)]
    return [difference.kind for difference in differences(program("sample"), *both)]


def test_what_plain_spark_repeats_is_repeated() -> None:
    assert repeated((said(), said()), (said("b"), said("b"))) == []
    assert repeated((said(), said()), (said(), said("b"))) == ["repeat"]
    assert repeated((said(), said("b")), (said(), said("b"))) == []


def test_parts_of_a_split_have_each_row_once() -> None:
    same, other = ({**said(count=9), "parts": [6, 3], "unequal": unequal} for unequal in (False, True))
    split = program("distinct", action="split", arguments={"weights": [0.7, 0.3], "seed": 5})
    assert compared(split, same, same) == []
    assert compared(split, same, other) == ["split"]
    assert compared(split, other, other) == compared(split, other, same) == []


def test_errors_are_of_one_kind() -> None:
    divided, cast = {"error": "DIVIDE_BY_ZERO", "text": "t"}, {"error": "CAST_INVALID_INPUT", "text": "t"}
    failing = program("divide by zero")
    assert compared(failing, divided, divided) == []
    assert compared(failing, divided, cast) == compared(failing, divided, said()) == ["error"]
    assert compared(program("distinct"), said(), divided) == ["error"]
    # Whether such a program meets the failing row depends on chance.
    assert compared(program("limit", "divide by zero"), divided, said()) == []
    assert compared(program("divide by zero", action="taken"), said(), divided) == []


def test_memory_is_a_kind_of_its_own() -> None:
    full = {"error": "out of memory", "text": "t"}
    assert compared(program("distinct"), said(), full) == ["memory"]
    assert compared(program("distinct"), full, full) == compared(program("distinct"), full, said()) == []
    assert [d.kind for d in differences(program("distinct"), {}, {ENDED: full})] == ["memory"]


def test_the_innermost_condition_names_an_error() -> None:
    wrapped = RuntimeError("[FAILED_EXECUTE_UDF] failed\nCaused by: [DIVIDE_BY_ZERO] Division by zero")
    assert harness.condition(wrapped) == "DIVIDE_BY_ZERO"
    assert harness.condition(RuntimeError("java.io.IOException: no")) == "java.io.IOException"
    assert harness.condition(RuntimeError("java.lang.OutOfMemoryError: Java heap")) == "out of memory"
    assert harness.condition(ValueError("no")) == "ValueError"


class StandIn:
    """Answers programs according to their text."""

    def __init__(self, answer: Callable[[str, int], Result]) -> None:
        self.texts: list[str] = []
        self._answer = answer

    def send(self, text: str, root: str, part: str = "all", out: Path | None = None) -> None:
        self.texts.append(text)

    def received(self) -> dict[str, Result]:
        names = re.findall(r"'(\d [\w ]+)'", self.texts[-1])
        return {name: self._answer(self.texts[-1], len(self.texts)) for name in names}

    def renew(self, slots: int) -> None:
        pass

    def contained(self) -> str:
        return ""

    def stop(self) -> None:
        pass


def well(text: str, number: int) -> Result:
    return said(unequal=False, parts=[2, 1], partitions=3, files=3, seconds=0.1)


def search(folder: Path, elastic: StandIn, plain: StandIn | None = None, number: int = 1) -> Search:
    return Search(Pair(plain or StandIn(well), elastic, folder), BATCH, number, folder)


def test_a_seed_stands_for_its_programs(tmp_path: Path) -> None:
    texts = []
    for name, number in (("one", 7), ("two", 7), ("three", 8)):
        stand_in = StandIn(well)
        found = search(tmp_path / name, stand_in, number=number)
        found.last(minutes=10, programs=30)
        assert found.findings == []
        texts.append(stand_in.texts)
    assert texts[0] == texts[1] != texts[2]
    assert len(set(texts[0])) == len(texts[0]) >= 30


def test_a_program_that_differs_shrinks_and_is_found_once(tmp_path: Path) -> None:
    def loses_rows(text: str, number: int) -> Result:
        return {**well(text, number), **(said(rows="b", count=2) if "distinct()" in text else {})}

    found = search(tmp_path, StandIn(loses_rows))
    found.last(minutes=10, programs=150)
    kinds = [sorted(kind.name for kind in finding.program.chain.kinds) for finding in found.findings]
    assert kinds == [["distinct", "some rows"]]
    (finding,) = found.findings
    assert finding.program.settings == ()
    assert len(finding.program.actions) == 1
    assert finding.again == TIMES
    assert found.known > 0
    assert finding.script is not None
    compile(finding.script.read_text(), "script", "exec")
    assert found.result()["findings"][0]["needs"] == ["distinct"]


def test_what_plain_spark_does_not_repeat_is_no_finding(tmp_path: Path) -> None:
    plain = StandIn(lambda text, number: {**well(text, number), "rows": f"{number}"})
    found = search(tmp_path, StandIn(well), plain)
    found.last(minutes=10, programs=40)
    assert found.findings == []
    assert found.unsteady > 0


def test_what_takes_longer_each_time_is_found(tmp_path: Path) -> None:
    slow = StandIn(lambda text, number: {**well(text, number), "seconds": 2.0 + ("explode" in text)})
    once = StandIn(lambda text, number: {**well(text, number), "seconds": 9.0 if number == 3 else 0.1})
    plain = StandIn(lambda text, number: {**well(text, number), "seconds": 2.0})
    found = search(tmp_path / "slow", slow, plain)
    found.last(minutes=10, programs=20)
    assert {finding.difference.kind for finding in found.findings} == {"slow"}
    found = search(tmp_path / "once", once)
    found.last(minutes=10, programs=20)
    assert found.findings == []


@seed(1)
@settings(max_examples=30, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(large_programs(), table_programs())
def test_other_programs_are_printed(large: Program, tables: Program) -> None:
    compile(body(large), "large", "exec")
    compile(body(tables), "tables", "exec")


@pytest.mark.parametrize("kind", FAILING)
def test_what_may_fail_says_so(kind: Kind) -> None:
    assert program(kind.name).chain.fails
    assert Difference("error", "0", "text").kind == "error"
