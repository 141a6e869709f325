"""Programs of a fixed seed, and past defects: with the plugin, they behave as in plain Spark.

Plain Spark's session is that of pytest-spark; the plugin's application is a separate process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import evolve
from pyspark.sql import SparkSession

from integration import delta
from integration.differential.application import Application, Pair
from integration.differential.compare import Results, differences
from integration.differential.half import BATCH, TABLES
from integration.differential.operators import LOOSE
from integration.differential.program import Action, Chain, Kind, Program, Step
from integration.differential.run import Search
from integration.differential.script import body
from integration.differential.sources import SOURCES
from integration.differential.wide import WIDE
from integration.differential.worker import run

# CI runs `make differential`. Warnings are not errors in the plugin's application, so neither are they here.
pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("default"),
]

SLOTS = 4  # as in spark_options in pyproject.toml
KINDS = {kind.name: kind for kind in SOURCES + WIDE + LOOSE}


class InThisProcess:
    """Runs programs with the session of this process."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder = spark, folder
        self._asked: tuple[str, str] | None = None

    def send(self, text: str, root: str, part: str = "all", out: Path | None = None) -> None:
        self._asked = text, root

    def received(self) -> Results:
        assert self._asked is not None
        text, root = self._asked
        out = self._folder / f"out-{Path(root).name}"
        out.mkdir(parents=True)
        return run(self._spark, text, root, str(out))

    def renew(self, slots: int) -> None:
        """Do nothing: plain Spark learns nothing, and a session's slots are fixed."""

    def contained(self) -> str:
        return ""

    def stop(self) -> None:
        pass


@pytest.fixture(scope="session", autouse=True)
def python() -> Iterator[None]:
    """Give tasks the same packages as the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        yield


@pytest.fixture(scope="module")
def pair(
    python: None, spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("differential")
    with Application(folder / "elastic", elastic=True) as elastic:
        found = Pair(InThisProcess(spark_session, folder / "plain"), elastic, folder / "data")
        found.renew(SLOTS)
        yield found
    # Other modules create their own contexts.
    spark_session.stop()


def step(kind: str, **arguments: object) -> Step:
    return Step(KINDS[kind], arguments)


def of(*steps: Step, action: str = "collected", **arguments: object) -> Program:
    return Program(Chain(steps), (Action(action, arguments),))


FILES = {"form": "parquet", "rows": 3000, "count": 2}
MANY = {**FILES, "rows": 100_000}  # needs more than one task in a shuffle
SPLIT = {"weights": [0.7, 0.3], "seed": 5}
ONCE_DEFECTS = {
    "a folder is read twice": of(step("files twice", **FILES)),
    "lines are read twice": of(step("files twice", **{**FILES, "form": "text"})),
    "a folder and a file in it": of(step("files and one of them", **FILES)),
    "two partitions in one folder": of(step("partitions of one place", rows=3000, count=2)),
    "parts of what is distinct": of(step("files", **MANY), step("distinct"), action="split", **SPLIT),
    "a sample of what is distinct": of(
        step("files", **FILES), step("distinct"), step("sample", share=0.5, seed=5)
    ),
    "random numbers behind groups": of(
        step("files", **FILES), step("aggregate", key="id", what="sum(v)"), step("random column", seed=42)
    ),
}


@pytest.mark.parametrize("program", ONCE_DEFECTS.values(), ids=ONCE_DEFECTS)
def test_what_was_wrong_once_is_as_with_plain_spark(pair: Pair, program: Program) -> None:
    # In a context that has learned nothing yet: the first execution teaches the second.
    pair.renew(SLOTS)
    assert differences(program, *pair.run(body(program))) == []


def test_programs_of_one_seed_are_as_with_plain_spark(pair: Pair, tmp_path: Path) -> None:
    found = Search(pair, evolve(BATCH, slots=[SLOTS], timed=False), 1, tmp_path)
    found.last(minutes=4, programs=20)
    assert [finding.told() for finding in found.findings] == []
    assert found.programs >= 5


@pytest.mark.skipif(not delta.FITS, reason="there is no Delta Lake for this Spark")
def test_programs_over_tables_of_delta_lake_are_as_with_plain_spark(tmp_path: Path) -> None:
    with TABLES.applications(tmp_path / "applications") as pair:
        found = Search(pair, evolve(TABLES, slots=[SLOTS], timed=False), 2, tmp_path)
        found.last(minutes=4, programs=15)
    assert [finding.told() for finding in found.findings] == []
    assert found.programs >= 5


def test_a_script_runs_by_itself(tmp_path: Path) -> None:
    from integration.streaming.launch import launched

    script = tmp_path / "program.py"
    python: Kind = KINDS["Python source"]
    program = of(Step(python, {"rows": 100, "parts": 2}), step("distinct"))
    script.write_text(BATCH.script(program, SLOTS, "a Python source"), encoding="utf-8")
    with launched("script", [str(script)], tmp_path / "run", {}, env={"PYTHONPATH": os.devnull}) as process:
        line = process.wait_for_line(r"(?m)^0 collected (\{.*)", 240)
        assert process.wait(60) == 0
    assert "'count': 100" in line[1]
