"""Tests of the command checkpoint that is killed at a step of `convert` or `undo`.

Typed again, it completes. The query starts with the plugin, too, and plain Spark goes on or says why not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from attrs import frozen

from integration.selected import selected
from integration.spark_minor import MOVES_STATE
from integration.streaming.command import COMMAND
from integration.streaming.conversions import FORMAT, KINDS, NEW_STATE, ORIGINAL, WORK, Steps, Workplace
from integration.streaming.crashes import Case, wait_until
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.upserts import last_values
from integration.streaming.waiting import PATIENCE_S
from spark_elastic_lab.demo.cluster import isolated_environment
from spark_elastic_lab.demo.processes import LoggedProcess

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not MOVES_STATE, reason="Spark rewrites state only since 4.2"),
]

MORE = 7
SLOW = "rename 0 150\ndelete 0 150\n"
CONVERT = ("--to", "rocksdb", "--partitions", str(MORE))


def partitions(case: Case) -> int:
    """Return the number of folders for partitions; they have to be numbered."""
    names = {path.name for path in (case.checkpoint / "state" / "0").iterdir() if path.name.isdigit()}
    assert names == set(map(str, range(len(names))))
    return len(names)


def converted_files(case: Case) -> int:
    return sum(bool(NEW_STATE.fullmatch(name)) for _, name in case.state_files())


CONVERT_STEPS = {
    "append": ("all_state", "staged", "moving", "first_moved", "settings", "commits"),
    "replace": ("staged", "moving", "all_moved", "commits", "settings"),
}
UNDO_STEPS: dict[str, Callable[[Case, int], bool]] = {
    "noted": lambda case, last: (case.checkpoint / ORIGINAL / "undo").exists(),
    "commits": lambda case, last: case.last_batch() == last,
    "offsets": lambda case, last: case.last_batch("offsets") == last,
    "first_deleted": lambda case, last: converted_files(case) < MORE,
    "last_deleted": lambda case, last: not converted_files(case),
}
CRASHES = [
    *(f"convert-{name}-{step}" for name, steps in CONVERT_STEPS.items() for step in steps),
    *(f"undo-{name}-{step}" for name in CONVERT_STEPS for step in UNDO_STEPS),
]


@frozen
class Left:
    """What a killed command leaves: where it was typed again, and copies that queries start from without."""

    again: Case
    plugin: Case
    plain: Case
    format_2: Case

    def starts(self) -> list[Case]:
        return [self.again, self.plugin]


class Outcome:
    def __init__(self, work: Workplace, crashes: set[str]) -> None:
        self._work = work
        self.left: dict[str, Left] = {}
        work.values.put(2)
        committed = work.base(KINDS["append"].partitions)
        work.values.put(1)
        self.expected = work.values.expected()
        for name in (name for name in CONVERT_STEPS if any(f"-{name}-" in crash for crash in crashes)):
            base = committed.copy(f"base-{name}")
            if KINDS[name].begun:
                work.begin(base)
            for step in CONVERT_STEPS[name]:
                if (crash := f"convert-{name}-{step}") in crashes:
                    self._convert(base.copy(crash), name, step)
            undone = [step for step in UNDO_STEPS if f"undo-{name}-{step}" in crashes]
            if undone:
                last = base.last_batch()
                converted = base.copy(f"converted-{name}")
                self._run("convert", converted, *CONVERT)
                work.run([converted], {FORMAT: "2"})
                assert converted.error() == ""
                for step in undone:
                    self._undo(converted.copy(f"undo-{name}-{step}"), KINDS[name].partitions, step, last)
        work.run([case for left in self.left.values() for case in left.starts()], WITH_PLUGIN, "plugin")
        work.run([left.plain for left in self.left.values()], {}, "plain")
        work.run([left.format_2 for left in self.left.values()], {FORMAT: "2"}, "format-2")

    def _convert(self, case: Case, name: str, step: str) -> None:
        steps = Steps(case, KINDS[name], MORE)
        self._kill(lambda: steps.done(step), "convert", case, *CONVERT)
        self._keep(case)
        # Where the change is completed first, there is nothing left to change.
        with self._command("convert", case, *CONVERT) as process:
            code = process.wait(2 * PATIENCE_S)
            said = process.log.read_text()
        assert code == 0 or f"already in {MORE} partitions" in said, said
        assert partitions(case) == MORE

    def _undo(self, case: Case, before: int, step: str, last: int) -> None:
        self._kill(lambda: UNDO_STEPS[step](case, last), "undo", case, "--yes")
        self._keep(case)
        self._run("undo", case, "--yes")
        assert (partitions(case), case.last_batch()) == (before, last)

    def _keep(self, case: Case) -> None:
        copies = (case.copy(f"{case.folder.name}-{name}") for name in ("plugin", "plain", "format-2"))
        self.left[case.folder.name] = Left(case, *copies)

    @contextmanager
    def _command(self, command: str, case: Case, *arguments: str) -> Iterator[LoggedProcess]:
        folder = self._work.next("command")
        folder.mkdir()
        settings = {**self._work.storage, "spark.driver.memory": "1g"}
        conf = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
        line = [str(COMMAND), "checkpoint", command, case.places()[0], *arguments, "--master", "local[2]"]
        environment = isolated_environment(folder / "conf", folder / "local")
        process = LoggedProcess(command, [*line, *conf], env=environment, log=folder / "log", cwd=folder)
        try:
            yield process
        finally:
            process.kill()

    def _run(self, command: str, case: Case, *arguments: str) -> None:
        with self._command(command, case, *arguments) as process:
            assert process.wait(2 * PATIENCE_S) == 0, process.log_tail()

    def _kill(self, done: Callable[[], bool], command: str, case: Case, *arguments: str) -> None:
        """Kill the command, with its JVM, as soon as it has done something."""
        with self._work.slow(SLOW), self._command(command, case, *arguments) as process:
            wait_until(done, process)
            process.kill()


# What plain Spark says where it does not go on with the right output.
REFUSALS = (
    "STREAMING_UNFINISHED_REPARTITION_DETECTED",
    "CANNOT_LOAD_STATE_STORE",
    "STATE_STORE_CHECKPOINT_IDS_NOT_SUPPORTED",
)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Outcome:
    return Outcome(Workplace(tmp_path_factory.mktemp("command")), selected(request, "crash"))


@pytest.mark.parametrize("crash", CRASHES)
def test_a_command_that_is_killed(outcome: Outcome, crash: str) -> None:
    left = outcome.left[crash]
    for case in left.starts():
        assert case.error() == ""
        assert last_values(case.output) == outcome.expected
        assert not (case.checkpoint / WORK).exists()
        assert not (case.checkpoint / ORIGINAL / "undo").exists()
    for case in (left.plain, left.format_2):
        if case.error():
            assert any(f"[{error}" in case.error() for error in REFUSALS), case.error()
        else:
            assert last_values(case.output) == outcome.expected
