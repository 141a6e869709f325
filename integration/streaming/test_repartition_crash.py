"""Tests that kill the driver at each step of a state re-partitioning; after a restart the application is
right.

One base checkpoint is made, and copied for each step. A stand-in orders the re-partitioning (see
repartitioning_policy.py), the real policy decides everything else.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen

from integration.selected import selected
from integration.streaming.crashes import Case, kill_when, run
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.stand_ins import our_script, program
from integration.streaming.state_store import FORMAT_1, REPARTITIONABLE
from integration.streaming.upserts import Values, last_values, pairs
from spark_elastic_lab.demo.processes import LoggedProcess

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]


@frozen
class Application:
    """A script of `apps`, the keys of its input, and the steps of Spark's re-partitioning of its state.

    The steps are in Spark's order; each shows in the checkpoint's folder.
    """

    script: str
    keys: int
    steps: tuple[str, ...]
    conf: dict[str, str]


# The metadata of an aggregation has no versions, so the re-partitioning writes none.
AGGREGATION = Application("upserts.py", 50_000, ("offsets", "first_state", "all_state", "commits"), {})
JOIN = Application(
    "pairs.py",
    2_000,
    ("offsets", "first_state", "all_state", "metadata", "commits"),
    {"spark.sql.streaming.join.stateFormatVersion": "3"},
)
# Files of the state have the number of its version as their name, with any content: a file that is left over
# would be taken for another one. Changes are written, so that a snapshot of the same version is not replaced.
IN_FORMAT_1 = evolve(
    AGGREGATION,
    conf={**FORMAT_1, "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true"},
)
FORMATS = {"format-2": AGGREGATION, "format-1": IN_FORMAT_1}
PARTITIONS = 5
STATE_FILE = re.compile(r"\d+(_.*)?\.(zip|changelog)")
UNDONE = f"interrupted move to {PARTITIONS} partitions undone"
# Some steps are a few milliseconds apart: the next one may be done before the signal arrives.
ATTEMPTS = 6


def each_step() -> Iterator[Any]:
    """Yield each application with each step of its re-partitioning."""
    for name, app in FORMATS.items():
        for step in app.steps:
            is_first = app is AGGREGATION and step in ("offsets", "all_state")
            yield pytest.param(app, step, id=f"{name}-{step}", marks=() if is_first else pytest.mark.slow)


each = pytest.mark.parametrize(("outcome", "step"), list(each_step()), indirect=["outcome"], scope="module")


class Steps:
    """The progress of a re-partitioning, according to the folder."""

    def __init__(self, case: Case, steps: tuple[str, ...]) -> None:
        self._case = case
        self._steps = steps
        self._state = case.state_files()
        number = case.last_batch() + 1
        self._files = {
            "offsets": case.checkpoint / "offsets" / str(number),
            "metadata": case.checkpoint / "state" / "0" / "_metadata" / "v2" / str(number),
            "commits": case.checkpoint / "commits" / str(number),
        }

    def done(self, step: str) -> bool:
        if step in self._files:
            return self._files[step].exists()
        new = self._case.state_files() - self._state
        finished = {partition for partition, name in new if STATE_FILE.fullmatch(name)}
        return bool(new) if step == "first_state" else len(finished) == PARTITIONS

    def last(self) -> str | None:
        return next((step for step in reversed(self._steps) if self.done(step)), None)


class Workplace:
    def __init__(self, folder: Path, app: Application) -> None:
        self.folder = folder
        self.values = Values(folder / "input", app.keys)
        self._app = app
        order = our_script("repartitioning_policy.py", str(PARTITIONS))
        self._repartitioning = program(folder / "policy", order)

    def run(self, name: str, cases: list[Case], conf: dict[str, str]) -> LoggedProcess:
        """Run the application to its end."""
        settings = {**self._app.conf, **conf}
        return run(self._app.script, self.values.folder, cases, self.folder / name, settings)

    def crash(self, base: Case, step: str) -> Case:
        """Kill the driver right after a step; return the files that are left."""
        for attempt in range(ATTEMPTS):
            case = base.copy(f"killed-at-{step}")
            steps = Steps(case, self._app.steps)
            conf = {**WITH_PLUGIN, **self._app.conf, "spark.elastic.python": self._repartitioning}
            folder = self.folder / f"crash-{step}-{attempt}"
            kill_when(partial(steps.done, step), self._app.script, self.values.folder, case, folder, conf)
            if steps.last() == step:
                return case
        raise AssertionError(f"the driver was never dead before the step after '{step}'")

    def base(self) -> Case:
        """Return a checkpoint for the input up to now."""
        (self.folder / "base").mkdir()
        base = Case(self.folder / "base")
        self.run("driver-base", [base], WITH_PLUGIN)
        assert base.error() == ""
        return base


class Outcome:
    def __init__(self, work: Workplace, cases: dict[str, Case], plain: dict[str, Case]) -> None:
        self.expected = work.values.expected()
        self.cases = cases
        self.plain = plain


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Outcome:
    app: Application = request.param
    work = Workplace(tmp_path_factory.mktemp("crash"), app)
    work.values.put(2)
    base = work.base()
    work.values.put(2)
    steps = selected(request, "step")
    cases = {step: work.crash(base, step) for step in app.steps if step in steps}
    plain = {step: case.copy(f"plain-{step}") for step, case in cases.items()}
    again = work.run("driver-again", list(cases.values()), WITH_PLUGIN)
    # Spark refuses at once or never, and its own settings need no policy.
    work.run("driver-plain", list(plain.values()), {**REPARTITIONABLE, **app.conf})
    assert again.exit_code == 0
    return Outcome(work, cases, plain)


@each
def test_nothing_is_lost_or_doubled(outcome: Outcome, step: str) -> None:
    case = outcome.cases[step]
    assert case.error() == ""
    assert last_values(case.output) == outcome.expected


@each
def test_plain_spark_refuses_a_checkpoint_in_the_middle(outcome: Outcome, step: str) -> None:
    error = outcome.plain[step].error()
    if step == "commits":
        assert error == ""
        assert last_values(outcome.plain[step].output) == outcome.expected
    else:
        assert "REPARTITION" in error


@pytest.mark.slow
def test_between_the_metadata_of_an_operator_and_the_commit(tmp_path: Path) -> None:
    work = Workplace(tmp_path, JOIN)
    work.values.put(1)
    base = work.base()
    work.values.put(2)
    case = work.crash(base, "metadata")
    work.run("driver-again", [case], WITH_PLUGIN)
    assert case.error() == ""
    assert pairs(case.output).equals(work.values.pairs())


@pytest.mark.parametrize(
    "app", [pytest.param(app, id=name, marks=pytest.mark.slow) for name, app in FORMATS.items()]
)
def test_what_cannot_be_completed_is_taken_back(tmp_path: Path, app: Application) -> None:
    work = Workplace(tmp_path, app)
    work.values.put(2)
    base = work.base()
    work.values.put(2)
    case = work.crash(base, "first_state")
    # The last of the new partitions cannot be written, and the others belong to no micro-batch.
    obstacle = case.checkpoint / "state" / "0" / str(PARTITIONS - 1)
    if obstacle.exists():
        shutil.rmtree(obstacle)
    obstacle.write_text("")
    first = work.run("driver-again", [case], WITH_PLUGIN)
    assert UNDONE in first.log.read_text()
    obstacle.unlink()
    # Another driver has the state from its files alone.
    work.values.put(1)
    work.run("driver-later", [case], WITH_PLUGIN)
    assert case.error() == ""
    assert last_values(case.output).equals(work.values.expected())
