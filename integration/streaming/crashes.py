"""Applications that are killed at a step of their work on a checkpoint, and what they leave."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from integration.streaming.launch import submitted
from integration.streaming.waiting import PATIENCE_S
from spark_elastic_lab.demo.processes import LoggedProcess

# Between two looks at a folder: some steps are a few milliseconds apart.
LOOK_S = 0.0005


class Case:
    """A checkpoint with the output of its micro-batches; `scheme` is that of the checkpoint's name."""

    def __init__(self, folder: Path, scheme: str = "") -> None:
        self.folder = folder
        self.checkpoint = folder / "checkpoint"
        self.output = folder / "output"
        self._scheme = scheme

    def places(self) -> list[str]:
        return [f"{self._scheme}{self.checkpoint}", str(self.output)]

    def copy(self, name: str) -> Case:
        target = self.folder.parent / name
        if target.exists():
            shutil.rmtree(target)
        shutil.copytree(self.folder, target)
        return Case(target, self._scheme)

    def state_files(self, within: str = "") -> set[tuple[str, str]]:
        """Return partition and name of each file of the first operator's state, finished or not."""
        found = set()
        try:
            for partition in os.scandir(self.checkpoint / within / "state" / "0"):
                if partition.name.isdigit():
                    found |= {
                        (partition.name, file.name) for file in os.scandir(partition.path) if file.is_file()
                    }
        except FileNotFoundError:
            pass  # it is being moved or deleted
        return found

    def last_batch(self, log: str = "commits") -> int:
        return max(int(p.name) for p in (self.checkpoint / log).iterdir() if p.name.isdigit())

    def error(self) -> str:
        file = self.output / "error"
        return file.read_text() if file.exists() else ""


def run(
    script: str, source: Path, cases: Sequence[Case], folder: Path, conf: Mapping[str, str]
) -> LoggedProcess:
    """Run an application of `apps` on the cases, to its end."""
    arguments = [str(source), *(place for case in cases for place in case.places())]
    with submitted(script, arguments, folder, conf) as process:
        code = process.wait(3 * PATIENCE_S)
        assert code == 0, process.log_tail()
    return process


def wait_until(done: Callable[[], bool], process: LoggedProcess) -> None:
    """Return as soon as the process has done something."""
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        assert process.running, process.log_tail()
        assert time.monotonic() < deadline, process.log_tail()
        time.sleep(LOOK_S)


def kill_when(
    done: Callable[[], bool], script: str, source: Path, case: Case, folder: Path, conf: Mapping[str, str]
) -> None:
    """Run an application of `apps`, and kill its driver as soon as it has done something."""
    with submitted(script, [str(source), *case.places()], folder, conf) as process:
        wait_until(done, process)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(PATIENCE_S) is not None
    # The application reports the loss of its driver.
    (case.output / "error").unlink(missing_ok=True)
