"""Tests of the differential run's streams without Spark: how they are made, printed, compared and shrunk."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings

from integration.differential.application import Pair
from integration.differential.compare import BUILDING, Results
from integration.differential.half import STREAMING
from integration.differential.program import Chain, Promise, Step
from integration.differential.run import Search
from integration.differential.streams.compare import differences
from integration.differential.streams.operators import INPUT, OPERATORS, Operator
from integration.differential.streams.program import HAND_OVER, Moment, Stream, body
from integration.differential.streams.strategies import streams

pytestmark = pytest.mark.long

KINDS = {kind.name: kind for kind in OPERATORS}


def step(name: str, *others: Chain, **given_values: Any) -> Step:
    """Return a step of a kind; fields that are not given have their first possible value."""
    kind = KINDS[name]
    values = {
        key: given_values.get(key, getattr(values, "elements", [getattr(values, "value", None)])[0])
        for key, values in kind.arguments.items()
    }
    return Step(kind, values, others)


def chain(*steps: Step, letter: str = "a") -> Chain:
    return Chain((Step(INPUT, {"letter": letter}), *steps))


FILE = Moment("step", ([[(1, 5)]],))
PROGRAM = Stream(chain(step("watermark"), step("windows")), 1, (FILE, Moment("move", (2,)), FILE))


def test_every_operator_is_printed_as_python() -> None:
    assert len(KINDS) == len(OPERATORS)
    for kind in OPERATORS:
        others = [chain(letter="b")] * kind.frames
        text = body(Stream(chain(step(kind.name, *others)), 1 + kind.frames, (FILE,)))
        compile(text, kind.name, "exec")
        assert not re.search(r"\{[a-z]+\}", text)


def test_a_program_is_printed_with_what_happens_in_its_order() -> None:
    lines = body(PROGRAM).splitlines()
    assert lines[0] == "def made(a):"
    assert lines[-6:] == [
        "run = Run(spark, OUT, made, 1, 'append', 'processingTime', 'foreachBatch')",
        "act('0 step', lambda: run.step([[(1, 5)]]))",
        "run.move(2)",
        "act('2 step', lambda: run.step([[(1, 5)]]))",
        "act('end', run.end)",
        "run.query.stop()",
    ]


def test_a_script_needs_nothing_of_ours() -> None:
    text = STREAMING.script(PROGRAM, 4, "what it shows")
    compile(text, "script", "exec")
    assert "integration" not in text
    assert "class Run:" in text
    assert "'spark.elastic.schedulerMode': 'adaptive'" in text


def names_of(*, lost: bool) -> set[str]:
    """Return the names of the steps of some programs."""
    names: set[str] = set()

    @seed(1)
    @settings(max_examples=20, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(streams(lost=lost))
    def look(program: Stream) -> None:
        compile(body(program), "stream", "exec")
        names.update(program.names)

    look()
    return names


def test_executors_are_lost_where_that_is_asked_for() -> None:
    losses = {"lose", "lose_within"}
    assert losses <= names_of(lost=True)
    assert not losses & names_of(lost=False)


@seed(1)
@settings(max_examples=60, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(streams())
def test_programs_are_such_as_spark_takes(program: Stream) -> None:
    text = body(program)
    compile(text, "stream", "exec")
    kinds = [kind for kind in program.chain.kinds if isinstance(kind, Operator)]
    assert [kind.name for kind in kinds].count("input") == program.inputs
    assert all(program.mode in kind.modes for kind in kinds)
    stateful = [kind for kind in kinds if kind.stateful]
    assert program.mode == "append" or len(stateful) <= 1
    assert program.mode != "complete" or len(stateful) == 1
    assert all(kind is kinds[-1] for kind in kinds if kind.last)
    files = [moment.arguments for moment in program.moments if moment.name == "step"]
    assert all(len(wave) == program.inputs for waves in files for wave in waves)
    if program.trigger == "availableNow":
        assert len(files) == len([moment for moment in program.moments if moment != HAND_OVER])


def said(rows: str = "a", batch: int = 1, watermark: str = "w", count: int = 3) -> dict[str, Any]:
    """Return the result of a step of two micro-batches, one of which has emitted rows."""
    batches = [[n == 0, watermark, count * (n == batch), rows if n == batch else ""] for n in range(2)]
    return {"count": count, "rows": rows, "batches": batches, "some": []}


def compared(plain: dict[str, Any], elastic: dict[str, Any], program: Stream = PROGRAM) -> list[str]:
    both: list[Results] = [{"0 step": said(), "2 step": found} for found in (plain, elastic)]
    return [difference.kind for difference in differences(program, *both)]


def test_rows_their_micro_batch_and_the_watermark_are_compared() -> None:
    assert compared(said(), said()) == []
    assert compared(said(), said(rows="b")) == compared(said(), said(count=2)) == ["rows"]
    assert compared(said(), said(batch=0)) == ["batch"]
    assert compared(said(), said(watermark="v")) == ["watermark"]


def test_of_a_limit_the_number_of_rows_is_compared() -> None:
    limited = Stream(chain(step("limit")), 1, PROGRAM.moments)
    assert limited.chain.promise is Promise.COUNT
    assert "run.end" not in body(limited)
    assert compared(said(), said(rows="b"), limited) == []
    assert compared(said(), said(count=2), limited) == ["rows"]


def test_errors_are_of_one_kind() -> None:
    error = {"error": "STREAM_FAILED", "text": "t"}
    assert compared(error, error) == []
    assert compared(said(), error) == compared(error, said()) == ["error"]
    assert [d.kind for d in differences(PROGRAM, {}, {BUILDING: error})] == ["error"]


def ended(plain: dict[str, Any], elastic: dict[str, Any]) -> list[str]:
    steps = {"0 step": said(), "2 step": said()}
    both = [{**steps, "end": found} for found in (plain, elastic)]
    return [difference.kind for difference in differences(PROGRAM, *both)]


def test_the_end_is_compared_where_a_batch_job_has_the_same_rows_in_plain_spark() -> None:
    same, other = {"count": 3, "emitted": 3, "unequal": False}, {"count": 3, "emitted": 2, "unequal": True}
    assert ended(same, same) == ended(other, same) == ended(other, other) == []
    assert ended(same, other) == ["end"]
    # Some results, such as open windows, only exist in the batch job.
    assert ended({"error": "UNSUPPORTED", "text": ""}, other) == []


class StandIn:
    """Answers each step alike; for a text with all of `broken`, the last one has another watermark."""

    def __init__(self, *broken: str) -> None:
        self._broken = broken
        self._text = ""

    def send(self, text: str, root: str, part: str = "all", out: Path | None = None) -> None:
        self._text = text

    def received(self) -> Results:
        found = {name: said() for name in re.findall(r"'(\d+ step)'", self._text)}
        if self._broken and all(part in self._text for part in self._broken):
            *_, last = found
            found[last] = said(watermark="earlier")
        return found

    def renew(self, slots: int) -> None:
        pass

    def contained(self) -> str:
        return ""

    def stop(self) -> None:
        pass


def test_a_stream_that_differs_shrinks_to_what_it_needs(tmp_path: Path) -> None:
    elastic = StandIn("run.move(", ".withWatermark(", "made(a, b)")
    found = Search(Pair(StandIn(), elastic, tmp_path), STREAMING, 1, tmp_path)
    found.last(minutes=10, programs=15)
    finding = found.findings[0]
    assert finding.difference.kind == "watermark"
    assert finding.needs == {"union", "watermark", "move"}
    assert [moment.name for moment in finding.program.moments] == ["step", "move", "step"]
    assert finding.script is not None
    compile(finding.script.read_text(), "script", "exec")
