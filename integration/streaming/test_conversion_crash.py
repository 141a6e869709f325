"""Tests of conversions whose driver is killed, or is not the only one.

Each leaves a checkpoint that starts with the plugin, and from which plain Spark goes on or says why not.
"""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest

from integration.selected import selected
from integration.streaming.conversions import AT_START, FORMAT, KINDS, ORIGINAL, WORK, Steps, Workplace
from integration.streaming.crashes import Case, wait_until
from integration.streaming.upserts import last_values
from integration.streaming.waiting import PATIENCE_S
from spark_elastic_lab.demo.processes import LoggedProcess

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

CRASHES = [(name, step) for name, kind in KINDS.items() for step in kind.steps]
# Later versions are then changes of the one that the conversion has written.
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
QUICK = {("append", "first_moved"), ("replace", "settings")}


def marked(crashes: Sequence[tuple[str, str]]) -> list[object]:
    """Return them as parameters; all but some are slow."""
    return [
        pytest.param(f"{name}-{step}", marks=[] if (name, step) in QUICK else pytest.mark.slow)
        for name, step in crashes
    ]


def is_plain(name: str, step: str) -> bool:
    """Return whether plain Spark goes on after a crash."""
    return KINDS[name].plain(step)[1] == ""


class Outcome:
    """What killed drivers leave, after a run with the plugin (`again`), or one without (`plain`).

    Where plain Spark has gone on, `later` is a run with the plugin after that.
    """

    def __init__(self, work: Workplace, crashes: Sequence[tuple[str, str]]) -> None:
        work.values.put(2)
        counts = {KINDS[name].partitions for name, _ in crashes}
        committed = {count: work.base(count) for count in counts}
        work.values.put(2)
        self.expected_of_plain = work.values.expected()
        self.again: dict[str, Case] = {}
        self.plain: dict[str, Case] = {}
        finished: dict[str, Case] = {}
        for name in dict(crashes):
            kind = KINDS[name]
            base = committed[kind.partitions].copy(f"base-{name}")
            if kind.begun:
                work.begin(base)
            for step in (step for of, step in crashes if of == name):
                crash = f"{name}-{step}"
                self.again[crash] = work.crash(base, kind, crash, step)
                self.plain[crash] = self.again[crash].copy(f"plain-{crash}")
                if step == kind.steps[-1]:
                    finished[crash] = self.plain[crash]
        work.run([case for crash, case in self.plain.items() if crash not in finished], {}, "plain")
        if finished:
            work.run(list(finished.values()), {FORMAT: "2", CHANGELOG: "true"}, "finished")
        gone_on = {crash: case for crash, case in self.plain.items() if not case.error()}
        self.later = {crash: case.copy(f"later-{crash}") for crash, case in gone_on.items()}
        work.values.put(1)
        work.run([*self.again.values(), *self.later.values()], AT_START, "again")
        self.expected = work.values.expected()


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Outcome:
    chosen = selected(request, "crash")
    crashes = [(name, step) for name, step in CRASHES if f"{name}-{step}" in chosen]
    return Outcome(Workplace(tmp_path_factory.mktemp("crash")), crashes)


@pytest.mark.parametrize("crash", marked(CRASHES))
def test_with_the_plugin_nothing_is_lost_or_doubled(outcome: Outcome, crash: str) -> None:
    case = outcome.again[crash]
    assert case.error() == ""
    assert last_values(case.output) == outcome.expected
    assert not (case.checkpoint / WORK).exists()
    assert (case.checkpoint / ORIGINAL / "note").exists(), "it is converted"


@pytest.mark.parametrize("crash", marked(CRASHES))
def test_plain_spark_goes_on_or_says_why_not(outcome: Outcome, crash: str) -> None:
    name, _, step = crash.partition("-")
    case, (_, said) = outcome.plain[crash], KINDS[name].plain(step)
    if said:
        assert f"[{said}" in case.error()
    else:
        assert case.error() == ""
        assert last_values(case.output) == outcome.expected_of_plain


@pytest.mark.parametrize("crash", marked([crash for crash in CRASHES if is_plain(*crash)]))
def test_a_start_with_the_plugin_after_plain_spark_has_gone_on(outcome: Outcome, crash: str) -> None:
    case = outcome.later[crash]
    assert case.error() == ""
    assert last_values(case.output) == outcome.expected
    assert not (case.checkpoint / WORK).exists()


# ---- Two drivers


class Drivers:
    """A place for two drivers on one checkpoint; one is frozen for a while, as if its machine were."""

    def __init__(self, work: Workplace) -> None:
        self.work = work
        work.values.put(2)
        self._base = work.base(KINDS["append"].partitions)

    def case(self, name: str) -> Case:
        """Return a checkpoint with input that it has not read."""
        case = self._base.copy(f"case-{len(list(self.work.folder.iterdir()))}")
        self.work.values.put(1)
        if KINDS[name].begun:
            self.work.begin(case)
        return case

    @contextmanager
    def frozen(self, case: Case, output: str, done: Callable[[], bool]) -> Iterator[LoggedProcess]:
        """Freeze a driver with the plugin that has done something; it goes on after the block, to its end."""
        places = [case.places()[0], str(case.folder / output)]
        with self.work.driver(places, AT_START) as process:
            with self.work.slow():
                wait_until(done, process)
                process.send(signal.SIGSTOP)
            yield process
            process.send(signal.SIGCONT)
            assert process.wait(2 * PATIENCE_S) == 0, process.log_tail()

    def check(self, case: Case, *others: str) -> None:
        """Check what the drivers have written together, and that the query goes on."""
        assert case.error() == ""
        for other in (case.folder / name for name in others):
            file = other / "error"
            if file.exists():
                assert re.search(TOLD, file.read_text()), file.read_text()
            for batch in other.iterdir():
                if (batch / "_SUCCESS").exists() and not (case.output / batch.name).exists():
                    shutil.copytree(batch, case.output / batch.name)
        assert last_values(case.output) == self.work.values.expected()
        self.work.values.put(1)
        copy = case.copy(f"{case.folder.name}-plain")
        self.work.run([case], AT_START)
        self.work.run([copy], {FORMAT: "2"})
        for one in (case, copy):
            assert one.error() == ""
            assert last_values(one.output) == self.work.values.expected()


TOLD = "Multiple streaming jobs detected|Multiple streaming queries are concurrently using"


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Drivers:
    return Drivers(Workplace(tmp_path_factory.mktemp("drivers")))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("append", "folder"),
        ("append", "first_state"),
        ("append", "all_state"),
        ("append", "staged"),
        ("append", "moving"),
        ("append", "first_moved"),
        ("append", "all_moved"),
        ("replace", "first_state"),
        ("replace", "staged"),
        ("replace", "moving"),
        ("replace", "first_moved"),
        ("replace", "commits"),
    ],
)
def test_a_second_driver_takes_over_from_one_that_is_frozen(drivers: Drivers, name: str, step: str) -> None:
    case = drivers.case(name)
    steps = Steps(case, KINDS[name])
    with drivers.frozen(case, "first", partial(steps.done, step)):
        drivers.work.run([case], AT_START)
    drivers.check(case, "first")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["append", "replace"])
@pytest.mark.parametrize("step", ["first_state", "staged"])
def test_a_driver_that_thaws_while_the_second_one_converts(drivers: Drivers, name: str, step: str) -> None:
    case = drivers.case(name)
    owner = case.checkpoint / WORK / "owner"
    steps = Steps(case, KINDS[name])
    with ExitStack() as second, drivers.frozen(case, "first", partial(steps.done, "first_state")):
        first = owner.read_text()

        def has_taken_over() -> bool:
            try:
                return owner.read_text() not in ("", first) and steps.done(step)
            except FileNotFoundError:
                return False

        second.enter_context(drivers.frozen(case, "second", has_taken_over))
    drivers.work.run([case], AT_START)
    drivers.check(case, "first", "second")
