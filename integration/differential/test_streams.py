"""Streams that must emit the same in plain Spark and with the plugin, despite the events in the latter."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.differential.application import Pair
from integration.differential.half import EXECUTORS, STREAMING
from integration.differential.measure import MEASURED
from integration.differential.program import Chain, Step
from integration.differential.run import Search
from integration.differential.streams.compare import differences
from integration.differential.streams.operators import INPUT, OPERATORS
from integration.differential.streams.program import HAND_OVER, Moment, Stream, body
from integration.spark_minor import MOVES_STATE

# CI runs `make differential`.
pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not MOVES_STATE, reason="the state of its queries cannot be moved"),
]

KINDS = {kind.name: kind for kind in OPERATORS}


def step(kind: str, *others: Chain, **arguments: object) -> Step:
    return Step(KINDS[kind], arguments, others)


def timed(letter: str, *steps: Step, delay: int = 5) -> Chain:
    return Chain((Step(INPUT, {"letter": letter}), step("watermark", delay=delay), *steps))


def fed(*files: list[tuple[int, int]]) -> Moment:
    """Return a step with one file for each input; an empty list means no file."""
    return Moment("step", (list(files),))


MOVE, WITHIN = Moment("move", (2,)), Moment("move_within", (1,))
RESTART, FAIL, SAVEPOINT = Moment("restart"), Moment("fail"), Moment("savepoint")
WINDOWS = step("windows", n=10, what="sum(v)")
SHUFFLE = (("spark.sql.shuffle.partitions", "3"),)
IDLE_INPUT = (
    fed([(1, 0)], [(1, 1000)]),
    MOVE,
    fed([(1, 20), (2, 21)], []),
    FAIL,
    fed([(1, 40), (2, 12)], []),
    WITHIN,
    fed([(2, 60)], []),
    fed([(2, 80)], []),
)
KEYS_THAT_TIME_OUT = (fed([(1, 0), (2, 3)]), MOVE, fed([(1, 30)]), fed([(3, 60)]), FAIL, fed([(3, 90)]))
STREAMS = {
    # A move once stopped the watermark while one of the inputs was idle.
    "an input is idle": Stream(
        timed("a", step("union", timed("b")), WINDOWS), 2, IDLE_INPUT, settings=SHUFFLE
    ),
    "a full outer join": Stream(
        timed("a", step("full join", timed("b"), n=10, how="full")), 2, IDLE_INPUT, settings=SHUFFLE
    ),
    "windows behind a join": Stream(
        timed("a", step("join", timed("b"), n=5, how="left"), WINDOWS),
        2,
        (
            fed([(1, 0), (2, 3)], [(1, 2)]),
            WITHIN,
            fed([(1, 20)], [(2, 4), (1, 22)]),
            SAVEPOINT,
            fed([(1, 40)], [(1, 41)]),
            MOVE,
            fed([(1, 60)], [(1, 61)]),
        ),
        settings=SHUFFLE,
    ),
    "late rows of sessions": Stream(
        timed("a", step("sessions", n=10, what="count(*)")),
        1,
        (
            fed([(1, 0), (1, 8), (2, 3)]),
            MOVE,
            fed([(1, 30)]),
            WITHIN,
            fed([(1, 9), (2, 33)]),
            RESTART,
            fed([(2, 70)]),
        ),
        settings=SHUFFLE,
    ),
    "totals of all rows": Stream(
        Chain((Step(INPUT, {"letter": "a"}), step("totals", what="sum(v)"))),
        1,
        (fed([(1, 0), (2, 3)]), MOVE, fed([(1, 1), (3, 8)]), SAVEPOINT, fed([(4, 0)]), WITHIN, fed([(4, 1)])),
        "complete",
        settings=SHUFFLE,
    ),
    "groups with state": Stream(
        timed("a", step("groups with state")),
        1,
        KEYS_THAT_TIME_OUT,
        settings=SHUFFLE,
    ),
    # Its state can be moved only after it was converted.
    "plain Spark has begun a join": Stream(
        timed("a", step("join", timed("b"), n=5, how="left"), WINDOWS),
        2,
        (
            fed([(1, 0), (2, 3)], [(1, 2)]),
            fed([(1, 20)], [(2, 4), (1, 22)]),
            HAND_OVER,
            fed([(1, 40)], [(1, 41)]),
            MOVE,
            fed([(1, 60)], [(1, 61)]),
            WITHIN,
            fed([(2, 80)], [(2, 81)]),
        ),
        settings=SHUFFLE,
    ),
    "a processor of states": Stream(
        timed("a", step("transform with state append")), 1, KEYS_THAT_TIME_OUT, settings=SHUFFLE
    ),
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with STREAMING.applications(tmp_path_factory.mktemp("streams")) as found:
        found.renew(4)
        yield found


@pytest.mark.parametrize("program", STREAMS.values(), ids=STREAMS)
def test_a_stream_emits_the_same_in_the_same_micro_batch(pair: Pair, program: Stream) -> None:
    plain, elastic = pair.run(body(program))
    assert differences(program, plain, elastic) == []
    assert not any("error" in found for found in plain.values())
    names = [moment.name for moment in program.moments]
    done = elastic[MEASURED]
    assert done.get("moves", 0) == names.count("move")
    assert done.get("moves ordered in a micro-batch", 0) == names.count("move_within")
    assert done.get("failures", 0) == names.count("fail")
    assert done.get("begun by plain Spark", 0) == names.count("hand_over")
    assert done.get("savepoints", 0) == names.count("savepoint")
    assert MEASURED not in plain or "moves" not in plain[MEASURED]


def test_streams_of_one_seed_are_as_with_plain_spark(pair: Pair, tmp_path: Path) -> None:
    found = Search(pair, STREAMING, 1, tmp_path)
    found.last(minutes=4, programs=15)
    assert [finding.told() for finding in found.findings] == []
    assert found.programs >= 5


def test_executors_are_lost_between_micro_batches_and_in_one(tmp_path: Path) -> None:
    lose, within = Moment("lose"), Moment("lose_within")
    moments = (
        fed([(1, 0), (2, 3)]),
        lose,
        fed([(1, 30)]),
        within,
        fed([(3, 60)]),
        MOVE,
        fed([(1, 90)]),
        fed([(3, 130)]),
    )
    program = Stream(timed("a", WINDOWS), 1, moments, settings=SHUFFLE)
    with EXECUTORS.applications(tmp_path) as pair:
        pair.renew(4)
        plain, elastic = pair.run(body(program))
    assert differences(program, plain, elastic) == []
    assert not any("error" in found for found in plain.values())
    assert elastic[MEASURED]["executors lost"] == 2


def test_a_script_runs_by_itself_with_the_plugin(tmp_path: Path) -> None:
    from integration.streaming.launch import WITH_PLUGIN, launched

    script = tmp_path / "program.py"
    script.write_text(STREAMING.script(STREAMS["an input is idle"], 4, "an idle input"), encoding="utf-8")
    env = {"PYTHONPATH": os.devnull}
    with launched("script", [str(script)], tmp_path / "run", WITH_PLUGIN, env=env) as process:
        line = process.wait_for_line(r"(?m)^7 step (\{.*)", 240)
        assert process.wait(60) == 0
    assert "1970-01-01T00:01:15.000Z" in line[1]
