"""A user's machine, on which the commands of "Getting started" are typed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

from integration.spark_minor import MOVES_STATE
from integration.streaming.waiting import PATIENCE_S
from spark_elastic_lab.demo.cluster import SMALL_JVM, isolated_environment, spark_home
from spark_elastic_lab.demo.processes import LoggedProcess
from tests.unit.docs.pages import read

PAGE = read("docs/getting-started.md")
SLOTS = 2
# For a new stateful query: a count that can never be changed leaves room for more slots.
FIRST = SLOTS if MOVES_STATE else 4 * SLOTS
# The count of plain Spark: its own 200 take minutes on a busy machine.
PLAIN = 20
_DEFAULTS = f"""\
spark.master                   local[{SLOTS}]
spark.ui.enabled               false
spark.sql.shuffle.partitions   {PLAIN}
spark.driver.host              127.0.0.1
spark.driver.bindAddress       127.0.0.1
spark.driver.memory            1g
spark.driver.extraJavaOptions  {SMALL_JVM}
spark.elastic.startTimeout     1min
spark.elastic.batch.decisionTimeout  20s
"""


@frozen
class Machine:
    """A user's machine: a Spark of their own with its settings, and the command line on the path."""

    folder: Path
    home: Path
    environment: Mapping[str, str]

    @contextmanager
    def typing(self, line: str) -> Iterator[LoggedProcess]:
        """Let a shell run a line; it ends with the block, with its child processes."""
        log = self.folder / "shell.log"
        process = LoggedProcess("shell", ["sh", "-c", line], env=self.environment, log=log, cwd=self.folder)
        try:
            yield process
        finally:
            process.stop()

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        """Let a shell run a short line to its end."""
        return subprocess.run(
            ["sh", "-c", line],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def partitions(self, line: str) -> int:
        """Run a line that runs the application, and return the number of partitions of its state."""
        with self.typing(line) as process:
            found = process.wait_for_line(r"partitions: (\d+)", PATIENCE_S)
            assert process.wait(PATIENCE_S) == 0, process.log_tail()
        return int(found[1])


def set_up(folder: Path) -> Machine:
    """Set up a machine in an empty folder."""
    home = folder / "spark"
    (home / "conf").mkdir(parents=True)
    (home / "conf" / "spark-defaults.conf").write_text(_DEFAULTS)
    for part in spark_home().iterdir():
        if part.name != "conf":
            (home / part.name).symlink_to(part)
    environment = isolated_environment(home / "conf", folder / "local")
    programs = (Path(sys.executable).parent, home / "bin", environment["PATH"])
    return Machine(
        folder,
        home,
        {**environment, "SPARK_HOME": str(home), "PATH": os.pathsep.join(map(str, programs))},
    )


def shown(line: str) -> str:
    """Return a line that the page shows."""
    assert any(line in block.text.splitlines() for block in PAGE.blocks if block.language == "shell")
    return line


def shown_python() -> str:
    """Return the page's lines of Python, which make the session."""
    (block,) = (block for block in PAGE.blocks if block.language == "python")
    return block.text
