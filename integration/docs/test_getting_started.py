"""What "Getting started" tells a user to type turns the plugin on, in a real Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import frozen

from integration.streaming.waiting import PATIENCE_S
from spark_elastic.demo.cluster import isolated_environment, spark_home
from spark_elastic.demo.processes import LoggedProcess
from tests.unit.docs.pages import read

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

PAGE = read("docs/getting-started.md")
SUBMIT = "spark-submit $(spark-elastic conf --mode reactive) app.py"
APPEND = "spark-elastic conf --format defaults >> $SPARK_HOME/conf/spark-defaults.conf"
SHELL = "spark-shell $(spark-elastic conf --mode reactive)"
DOCTOR = "spark-elastic doctor"

_SLOTS = 2
# Plain Spark's, where nothing is set.
_PLAIN = 200
_DEFAULTS = f"""\
spark.master                   local[{_SLOTS}]
spark.ui.enabled               false
spark.driver.host              127.0.0.1
spark.driver.bindAddress       127.0.0.1
spark.driver.memory            1g
spark.driver.extraJavaOptions  -XX:+UseSerialGC -XX:TieredStopAtLevel=1
"""
_SESSION = """\
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
"""
# A plain application: it prints the number of partitions of its state after the first rows.
_APPLICATION = """\
import time

rows = spark.readStream.format("rate").load().selectExpr("value % 7 AS key")
query = rows.groupBy("key").count().writeStream.format("noop").outputMode("update").start()
while not any(progress["numInputRows"] for progress in query.recentProgress):
    if not query.isActive:
        raise SystemExit(f"the query has ended: {query.exception()}")
    time.sleep(0.2)
print(f"partitions: {query.lastProgress['stateOperators'][0]['numShufflePartitions']}", flush=True)
query.stop()
spark.stop()
"""
_IN_SCALA = """\
val rows = spark.readStream.format("rate").load().selectExpr("value % 7 AS key")
val query = rows.groupBy("key").count().writeStream.format("noop").outputMode("update").start()
while (query.isActive && !query.recentProgress.exists(_.numInputRows > 0)) Thread.sleep(200)
println("partitions: " + query.lastProgress.stateOperators(0).numShufflePartitions)
query.stop()
:quit
"""


@frozen
class Machine:
    """A user's machine: a Spark of their own with its settings, and the command line on the path."""

    folder: Path
    home: Path
    environment: Mapping[str, str]

    @contextmanager
    def typing(self, line: str) -> Iterator[LoggedProcess]:
        """Let a shell run a line; it ends with the block, with all it started."""
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
        """Run a line that runs the application, and return how many partitions its state has."""
        with self.typing(line) as process:
            found = process.wait_for_line(r"partitions: (\d+)", PATIENCE_S)
            assert process.wait(PATIENCE_S) == 0, process.log_tail()
        return int(found[1])


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    home = tmp_path / "spark"
    (home / "conf").mkdir(parents=True)
    (home / "conf" / "spark-defaults.conf").write_text(_DEFAULTS)
    for part in spark_home().iterdir():
        if part.name != "conf":
            (home / part.name).symlink_to(part)
    (tmp_path / "app.py").write_text(_SESSION + _APPLICATION)
    environment = isolated_environment(home / "conf", tmp_path / "local")
    programs = (Path(sys.executable).parent, home / "bin", environment["PATH"])
    return Machine(
        tmp_path,
        home,
        {**environment, "SPARK_HOME": str(home), "PATH": os.pathsep.join(map(str, programs))},
    )


def shown(line: str) -> str:
    """Return a line that the page shows."""
    assert any(line in block.text.splitlines() for block in PAGE.blocks if block.language == "shell")
    return line


def test_without_the_plugin_it_is_plain_spark(machine: Machine) -> None:
    assert machine.partitions("spark-submit app.py") == _PLAIN


def test_the_flags_turn_it_on(machine: Machine) -> None:
    assert machine.partitions(shown(SUBMIT)) == _SLOTS


def test_the_lines_in_the_defaults_turn_it_on_and_the_doctor_is_content(machine: Machine) -> None:
    appended = machine.run(shown(APPEND))
    assert appended.returncode == 0, appended.stderr
    doctor = machine.run(shown(DOCTOR))
    assert doctor.returncode == 0, doctor.stdout
    assert machine.partitions("spark-submit app.py") == _SLOTS


def test_the_lines_of_python_turn_it_on(machine: Machine) -> None:
    (block,) = (block for block in PAGE.blocks if block.language == "python")
    (machine.folder / "app.py").write_text(f"{block.text}\n{_APPLICATION}")
    assert machine.partitions("python app.py") == _SLOTS


def test_the_flags_turn_it_on_for_the_shell(machine: Machine) -> None:
    (machine.folder / "app.scala").write_text(_IN_SCALA)
    assert machine.partitions(f"{shown(SHELL)} < app.scala") == _SLOTS
