"""Tests of the command checkpoint that is killed at a step of `convert` or `undo`.

Typed again, it completes; the query starts with the plugin, too, and plain Spark goes on or says why not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from integration.spark_minor import MOVES_STATE
from integration.streaming.command import COMMAND
from integration.streaming.conversions import FORMAT, KINDS, NEW_STATE, ORIGINAL, WORK, Kind, Steps, Workplace
from integration.streaming.crashes import Case, wait_until
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.upserts import last_values
from integration.streaming.waiting import PATIENCE_S
from spark_elastic_lab.demo.cluster import isolated_environment
from spark_elastic_lab.demo.processes import LoggedProcess

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not MOVES_STATE, reason="Spark rewrites state only since 4.2"),
]

MORE = 7
CONVERT = ("--to", "rocksdb", "--partitions", str(MORE))


class Killed:
    """A place for commands that are killed, and checkpoints that they work on."""

    def __init__(self, work: Workplace) -> None:
        self.work = work
        self._runs = 0
        work.values.put(2)
        self._base = work.base(KINDS["append"].partitions)

    def case(self, kind: Kind) -> Case:
        """Return a checkpoint with input that it has not read."""
        self._runs += 1
        case = self._base.copy(f"case-{self._runs}")
        self.work.values.put(1)
        if kind.begun:
            self.work.begin(case)
        return case

    @contextmanager
    def command(self, command: str, case: Case, *arguments: str) -> Iterator[LoggedProcess]:
        self._runs += 1
        folder = self.work.folder / f"command-{self._runs}"
        folder.mkdir()
        settings = {**self.work.storage, "spark.driver.memory": "1g"}
        conf = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
        line = [
            str(COMMAND),
            "checkpoint",
            command,
            case.places()[0],
            *arguments,
            "--master",
            "local[2]",
            *conf,
        ]
        environment = isolated_environment(folder / "conf", folder / "local")
        process = LoggedProcess(command, line, env=environment, log=folder / "log", cwd=folder)
        try:
            yield process
        finally:
            process.kill()

    def run(self, command: str, case: Case, *arguments: str) -> str:
        """Run the command to its end; return what it says."""
        with self.command(command, case, *arguments) as process:
            assert process.wait(2 * PATIENCE_S) == 0, process.log_tail()
            return process.log.read_text()

    def kill(self, done: Callable[[], bool], command: str, case: Case, *arguments: str) -> None:
        """Kill the command, with its JVM, as soon as it has done something."""
        with self.work.slow("rename 0 150\ndelete 0 150\n"), self.command(command, case, *arguments) as one:
            wait_until(done, one)
            one.kill()

    def check(self, case: Case, again: Callable[[Case], object]) -> None:
        """Check that the command works again, and a start with the plugin, and plain Spark or its error."""
        plugin, plain, plain_2 = (
            case.copy(f"{case.folder.name}-{name}") for name in ("plugin", "plain", "f2")
        )
        again(case)
        assert not (case.checkpoint / WORK).exists()
        expected = self.work.values.expected()
        self.work.run([case, plugin], WITH_PLUGIN)
        self.work.run([plain], {})
        self.work.run([plain_2], {FORMAT: "2"})
        for one in (case, plugin):
            assert one.error() == ""
            assert last_values(one.output) == expected
        for one in (plain, plain_2):
            if "SHOW" in os.environ:
                print("PLAIN", one.folder.name, repr(one.error()))
            if not one.error():
                assert last_values(one.output) == expected


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    return Killed(Workplace(tmp_path_factory.mktemp("killed")))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "step"),
    [(name, step) for name in ("append", "replace") for step in KINDS[name].steps if step != "folder"],
)
def test_convert_is_killed(killed: Killed, name: str, step: str) -> None:
    kind = KINDS[name]
    case = killed.case(kind)
    steps = Steps(case, kind, MORE)
    killed.kill(lambda: steps.done(step), "convert", case, *CONVERT)

    def again(case: Case) -> None:
        """Type it again; where the change has been completed by that, there is nothing left to change."""
        with killed.command("convert", case, *CONVERT) as process:
            code = process.wait(2 * PATIENCE_S)
            said = process.log.read_text()
        assert code == 0 or f"already in {MORE} partitions" in said, said
        assert partitions(case) == set(map(str, range(MORE)))

    killed.check(case, again)


def partitions(case: Case) -> set[str]:
    return {folder.name for folder in (case.checkpoint / "state" / "0").iterdir()}


def converted_files(case: Case) -> int:
    return sum(bool(NEW_STATE.fullmatch(name)) for _, name in case.state_files())


UNDO: dict[str, Callable[[Case, int], bool]] = {
    "noted": lambda case, last: (case.checkpoint / ORIGINAL / "undo").exists(),
    "commits": lambda case, last: case.last_batch() == last,
    "offsets": lambda case, last: case.last_batch("offsets") == last,
    "first_deleted": lambda case, last: converted_files(case) < MORE,
    "last_deleted": lambda case, last: not converted_files(case),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["append", "replace"])
@pytest.mark.parametrize("step", UNDO)
def test_undo_is_killed(killed: Killed, name: str, step: str) -> None:
    case = killed.case(KINDS[name])
    last = case.last_batch()
    killed.run("convert", case, *CONVERT)
    killed.work.run([case], {FORMAT: "2"})
    assert case.error() == ""
    killed.work.values.put(1)
    killed.kill(lambda: UNDO[step](case, last), "undo", case, "--yes")

    def again(case: Case) -> None:
        killed.run("undo", case, "--yes")
        assert partitions(case) == set(map(str, range(KINDS[name].partitions)))
        assert case.last_batch() == last

    killed.check(case, again)
