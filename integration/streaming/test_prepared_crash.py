"""Tests that kill the driver at each step of a move that is prepared while micro-batches run.

The next start with the plugin goes on as if nothing had been prepared, or with the new count once the switch
is committed, and leaves nothing of a copy that is not used. Plain Spark goes on or says why not, as after a
move in a pause.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import frozen

from integration.selected import selected
from integration.streaming.conversions import Workplace
from integration.streaming.crashes import Case, wait_until
from integration.streaming.driver import PLUGIN
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.prepared import Copied, Orders, copies, empty_partitions, files, read
from integration.streaming.stand_ins import ScriptedPolicy
from integration.streaming.state_store import REPARTITIONABLE
from integration.streaming.upserts import last_values, pairs
from integration.streaming.waiting import PATIENCE_S, eventually
from spark_elastic_lab.demo.processes import LoggedProcess

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

APP = "moved.py"
PARTITIONS = 5  # instead of two
ATTEMPTS = 4
RETAINED = 2
# Some steps would be a few milliseconds apart.
SLOW = "rename 0 150\ndelete 0 50\n"
CHANGELOGS = {"spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true"}
FORGETFUL = {
    "spark.sql.streaming.minBatchesToRetain": str(RETAINED),
    "spark.sql.streaming.stateStore.maintenanceInterval": "100ms",
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "1",
}
PREPARING = ("copying", "copied", "first_placed", "placed", "following")
SWITCHING = ("used", "offsets", "metadata", "commits", "forgetting")
IN_THE_MIDDLE = ("offsets", "metadata")
COMMITTED = ("commits", "forgetting")


@frozen
class Operator:
    """An operator of the application, and which steps a move of its state has."""

    name: str
    conf: dict[str, str]

    @property
    def steps(self) -> tuple[str, ...]:
        # The description of an aggregation has no versions.
        return tuple(s for s in (*PREPARING, *SWITCHING) if self.name != "totals" or s != "metadata")


OPERATORS = {
    "totals": Operator("totals", {}),
    "pairs": Operator("pairs", {"spark.sql.streaming.join.stateFormatVersion": "3"}),
    "memories": Operator("memories", {"spark.pyspark.python": sys.executable}),
}
CRASHES = [(name, step) for name, operator in OPERATORS.items() for step in operator.steps]
QUICK = {("totals", "commits")}


def marked(crashes: Sequence[tuple[str, str]]) -> list[object]:
    """Return them as parameters; all but some are slow."""
    return [
        pytest.param(name, step, id=f"{name}-{step}", marks=() if (name, step) in QUICK else pytest.mark.slow)
        for name, step in crashes
    ]


class Steps:
    """The progress of a prepared move, according to the folder."""

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint

    def last(self) -> str:
        """Return the last step that is done."""
        found = copies(self._checkpoint)
        if not found:
            return ""
        used = read(found[0] / "used").split("\n")
        return self._switched(found[0], used[0]) if len(used) > 2 else self._prepared(found[0])

    def _switched(self, folder: Path, number: str) -> str:
        if (self._checkpoint / "commits" / number).exists():
            return "commits" if (folder / "placed").exists() else "forgetting"
        if (self._checkpoint / "state" / "0" / "_metadata" / "v2" / number).exists():
            return "metadata"
        return "offsets" if (self._checkpoint / "offsets" / number).exists() else "used"

    def _prepared(self, folder: Path) -> str:
        copied = Copied.of(folder)
        placed = [name for name in copied.placed if (self._checkpoint / name).exists()]
        if placed and len(placed) == len(copied.placed):
            written = [n for n in copied.changelogs(self._checkpoint) if not Path(n).name.startswith(".")]
            return "following" if len(written) > PARTITIONS else "placed"
        if placed:
            return "first_placed"
        written = [name for name in files(folder / "state") if name.endswith(".zip") and "/." not in name]
        return "copied" if len(written) == PARTITIONS else "copying" if written else ""


class Crashes(Workplace):
    """A place for drivers that are killed while they move the state of an operator."""

    def __init__(self, folder: Path, operator: Operator) -> None:
        super().__init__(folder, APP)
        # A frozen driver may be about to rename an entry of a log.
        self.storage["spark.driver.extraJavaOptions"] += " -Daway.refuses=true"
        self._conf = {"spark.moved.operator": operator.name, **operator.conf}
        self._tried = 0

    def all(self, cases: Sequence[Case], conf: dict[str, str], name: str) -> None:
        """Run the application on each case, to its end."""
        if cases:
            self.run(cases, {**self._conf, **conf}, name)

    def scripted(self) -> tuple[ScriptedPolicy, dict[str, str]]:
        """Return a policy, which gives each query two partitions, and the settings of a driver with it."""
        self._tried += 1
        policy = ScriptedPolicy(self.folder / f"policy-{self._tried}")
        return policy, {**self._conf, **PLUGIN, "spark.elastic.python": policy.python}

    def first(self) -> Case:
        """Return a checkpoint for the input up to now."""
        base = Case(self.next("first"), "away://")
        base.folder.mkdir()
        self.all([base], self.scripted()[1], "first")
        assert base.error() == ""
        return base

    @contextmanager
    def stopped(self, case: Case, step: str, how: signal.Signals, output: Path) -> Iterator[LoggedProcess]:
        """Send a signal to a driver as soon as it has done a step; it ends with the block."""
        steps = Steps(case.checkpoint)
        policy, conf = self.scripted()
        with self.driver([case.places()[0], str(output)], {**conf, "spark.moved.steady": "true"}) as process:
            eventually(lambda: policy.all("QueryStarted"), "it runs")
            orders = Orders(policy, policy.all("QueryStarted")[0]["query"])
            with self.slow(SLOW):
                if step in PREPARING:
                    orders.begin(PARTITIONS)
                    self.values.put(4 if step == "following" else 1)
                else:
                    orders.prepare(PARTITIONS)
                    orders.order_move(PARTITIONS)
                until = (step, *after(step), *([""] if step in COMMITTED else []))  # it may be gone already
                wait_until(lambda: steps.last() in until, process)
                os.kill(process.pid, how)
            yield process

    def crashed(self, base: Case, step: str) -> Case:
        """Kill the driver right after a step; return what it leaves."""
        for _ in range(ATTEMPTS):
            case = base.copy(f"killed-at-{step}")
            with self.stopped(case, step, signal.SIGKILL, case.output) as process:
                assert process.wait(PATIENCE_S) is not None
            (case.output / "error").unlink(missing_ok=True)
            if Steps(case.checkpoint).last() == step:
                return case
        raise AssertionError(f"the driver was never dead before the step after '{step}'")


def after(step: str) -> tuple[str, ...]:
    """Return the steps that may show instead, as they come soon."""
    every = (*PREPARING, *SWITCHING)
    return every[every.index(step) + 1 :]


class Outcome:
    """What killed drivers leave, after a run with the plugin (`again`), or one without (`plain`).

    Where plain Spark has gone on, `later` is a run with the plugin after that. By then, it has run for so
    many micro-batches that the entry of the switch is not kept any more.
    """

    def __init__(self, work: Crashes, name: str, steps: Sequence[str]) -> None:
        self.name = name
        work.values.put(2)
        base = work.first()
        self.again = {step: work.crashed(base, step) for step in steps}
        self.copied = {
            step: [Copied.of(folder) for folder in copies(case.checkpoint)]
            for step, case in self.again.items()
        }
        self.plain = {step: case.copy(f"plain-{step}") for step, case in self.again.items()}
        work.values.put(2 * RETAINED)
        work.all(list(self.plain.values()), {**REPARTITIONABLE, **CHANGELOGS, **FORGETFUL}, "plain")
        self.expected_of_plain = work.values.expected()
        self.pairs_of_plain = work.values.pairs()
        gone_on = {step: case for step, case in self.plain.items() if step not in IN_THE_MIDDLE}
        self.later = {step: case.copy(f"later-{step}") for step, case in gone_on.items()}
        work.values.put(1)
        work.all([*self.again.values(), *self.later.values()], WITH_PLUGIN, "again")
        self.expected, self.pairs = work.values.expected(), work.values.pairs()

    def check(self, case: Case, plain: bool = False) -> None:
        assert case.error() == ""
        if self.name == "pairs":
            assert pairs(case.output).equals(self.pairs_of_plain if plain else self.pairs)
        else:
            assert last_values(case.output).equals(self.expected_of_plain if plain else self.expected)

    def check_nothing_left(self, case: Case, step: str) -> None:
        """Check that nothing is left of the copy, except if a committed micro-batch uses it."""
        assert copies(case.checkpoint) == []
        present = [name for copied in self.copied[step] for name in copied.present(case.checkpoint)]
        assert step in COMMITTED or present == []
        assert empty_partitions(case.checkpoint) == []


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, Outcome]:
    made: dict[str, Outcome] = {}
    names, steps = selected(request, "name"), selected(request, "step")
    for name in (name for name in OPERATORS if name in names):
        work = Crashes(tmp_path_factory.mktemp("crash"), OPERATORS[name])
        made[name] = Outcome(work, name, [step for step in OPERATORS[name].steps if step in steps])
    return made


@pytest.mark.parametrize(("name", "step"), marked(CRASHES))
def test_with_the_plugin_nothing_is_lost_or_doubled(
    outcomes: dict[str, Outcome], name: str, step: str
) -> None:
    outcome = outcomes[name]
    outcome.check(outcome.again[step])
    outcome.check_nothing_left(outcome.again[step], step)


@pytest.mark.parametrize(("name", "step"), marked(CRASHES))
def test_plain_spark_goes_on_or_says_why_not(outcomes: dict[str, Outcome], name: str, step: str) -> None:
    outcome = outcomes[name]
    case = outcome.plain[step]
    if step in IN_THE_MIDDLE:
        assert "[STREAMING_UNFINISHED_REPARTITION_DETECTED" in case.error()
    else:
        outcome.check(case, plain=True)


@pytest.mark.parametrize(("name", "step"), marked([c for c in CRASHES if c[1] not in IN_THE_MIDDLE]))
def test_with_the_plugin_after_plain_spark_has_gone_on(
    outcomes: dict[str, Outcome], name: str, step: str
) -> None:
    outcome = outcomes[name]
    outcome.check(outcome.later[step])
    outcome.check_nothing_left(outcome.later[step], step)


# ---- Two drivers

TOLD = "|".join(
    (
        "Multiple streaming jobs detected",
        "Multiple streaming queries are concurrently using",
        "CONCURRENT",
        # The other driver has kept its own batches for as long as it has to, and deleted older ones.
        "CANNOT_READ_STREAMING_STATE_FILE",
    )
)


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Crashes, Case]:
    work = Crashes(tmp_path_factory.mktemp("drivers"), OPERATORS["totals"])
    work.values.put(2)
    return work, work.first()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "idle"),
    [
        *(pytest.param(step, False, id=f"{step}-busy") for step in OPERATORS["totals"].steps),
        *(
            pytest.param(step, True, id=f"{step}-idle")
            for step in OPERATORS["totals"].steps
            if step in SWITCHING
        ),
    ],
)
def test_a_second_driver_takes_over_from_one_that_is_frozen(
    drivers: tuple[Crashes, Case], step: str, idle: bool
) -> None:
    """The second one runs micro-batches, or has nothing to read. Then the first one goes on where it was."""
    work, base = drivers
    case = base.copy(f"{step}-{idle}")
    if idle:
        work.all([case], WITH_PLUGIN, "before")  # what others have put meanwhile
    first = case.folder / "first"
    first.mkdir()

    def written() -> int:
        return len(list(first.glob("*/_SUCCESS")))

    with work.stopped(case, step, signal.SIGSTOP, first) as process:
        if not idle:
            work.values.put(2)
        work.all([case], WITH_PLUGIN, "second")
        assert case.error() == ""
        before = written()
        os.kill(process.pid, signal.SIGCONT)
        work.values.put(1)
        eventually(lambda: not process.running or written() > before, "it goes on, or is told")
        error = read(first / "error")  # the end of a driver that goes on is another one
    assert error == "" or re.search(TOLD, error), error
    for batch in first.iterdir():
        if (batch / "_SUCCESS").exists() and not (case.output / batch.name).exists():
            shutil.copytree(batch, case.output / batch.name)
    work.values.put(1)
    plain = case.copy(f"{case.folder.name}-plain")
    work.all([case], WITH_PLUGIN, "again")
    work.all([plain], {**REPARTITIONABLE, **CHANGELOGS}, "plain")
    for one in (case, plain):
        assert one.error() == "" or (one is plain and "[STREAMING_UNFINISHED_REPARTITION" in one.error())
        if one.error() == "":
            assert last_values(one.output).equals(work.values.expected())
    assert copies(case.checkpoint) == []
    assert empty_partitions(case.checkpoint) == []
