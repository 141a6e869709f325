"""Tests that the jar from a Maven repository and two settings are enough for an application."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import frozen

from build_jar import project_version
from integration.jar.alone import bare_python, repository
from integration.spark_minor import MOVES_STATE
from integration.streaming.stand_ins import program
from integration.streaming.waiting import PATIENCE_S
from spark_elastic_lab.demo.cluster import SMALL_JVM, isolated_environment, spark_home
from spark_elastic_lab.demo.processes import LoggedProcess
from tests.unit.docs.pages import read

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

SLOTS = 2
# The count of plain Spark: its own 200 take minutes on a busy machine.
PLAIN = 20
# The application and its Python have PySpark, and none of our packages.
APPLICATION = """\
import json, sys, time, urllib.error, urllib.request
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
try:
    import spark_elastic
    raise SystemExit("spark-elastic is installed for " + sys.executable)
except ImportError:
    pass
rows = spark.readStream.format("rate").load().selectExpr("value % 7 AS key")
counts = rows.groupBy("key").count().writeStream.queryName("counts")
query = counts.format("noop").outputMode("update").start()
while not any(progress["numInputRows"] for progress in query.recentProgress):
    if not query.isActive:
        raise SystemExit(f"the query has ended: {query.exception()}")
    time.sleep(0.2)
# In one piece: Spark runs Python unbuffered, and lines of the log come between pieces.
partitions = query.lastProgress["stateOperators"][0]["numShufflePartitions"]
print(f"partitions: {partitions}\\n", end="", flush=True)
if "ask" in sys.argv:
    address = spark.sparkContext.uiWebUrl + "/elastic/api/v1/"
    for name in ("overview", "decisions"):
        for tries in range(10):
            # Into files, for the same reason. The first answer may take longer than the driver waits for it.
            try:
                with urllib.request.urlopen(address + name, timeout=60) as answer:
                    found = json.load(answer)
                break
            except urllib.error.HTTPError as busy:
                if busy.code != 503:
                    raise
        with open(name + ".json", "w") as file:
            json.dump(found, file)
query.stop()
spark.stop()
"""
# The command that a page shows; VERSION and the Spark are filled in.
(COMMAND,) = (block.text for block in read("docs/getting-started.md").blocks if "--packages" in block.text)
SHOWN_FOR = "4.2_2.13:VERSION"
_QUIET = {
    "spark.ui.port": "0",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": str(PLAIN),
    "spark.driver.extraJavaOptions": SMALL_JVM,
}


@frozen
class Machine:
    """A machine with Spark and PySpark, and a Maven repository that it can reach."""

    folder: Path
    jar: Path
    environment: Mapping[str, str]

    @contextmanager
    def running(self, arguments: Sequence[str], *, conf: Mapping[str, str]) -> Iterator[LoggedProcess]:
        """Run the application; it ends with the block, with its child processes."""
        submit = [str(spark_home() / "bin" / "spark-submit"), "--master", f"local[{SLOTS}]"]
        for key, value in {**_QUIET, **conf}.items():
            submit += ["--conf", f"{key}={value}"]
        process = LoggedProcess(
            "alone", [*submit, *arguments], env=self.environment, log=self.folder / "driver.log",
            cwd=self.folder,
        )  # fmt: skip
        try:
            yield process
        finally:
            process.stop()


@pytest.fixture(scope="module")
def jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the jar to a Maven repository for the installed Spark."""
    return repository(tmp_path_factory.mktemp("maven") / "repository")


@pytest.fixture
def machine(tmp_path: Path, jar: Path) -> Machine:
    (tmp_path / "app.py").write_text(APPLICATION)
    (tmp_path / "nothing").mkdir()
    environment = {
        **isolated_environment(tmp_path / "conf", tmp_path / "local"),
        "PYSPARK_PYTHON": bare_python(tmp_path / "venv", ("pyspark", "py4j")),
        # In place of Maven Central: everything must be in the repository that is named.
        "DEFAULT_ARTIFACT_REPOSITORY": (tmp_path / "nothing").as_uri(),
    }
    environment.pop("PYTHONPATH", None)
    return Machine(tmp_path, jar, environment)


def test_packages_and_two_settings_are_all_it_needs(machine: Machine) -> None:
    assert SHOWN_FOR in COMMAND
    command = COMMAND.replace(SHOWN_FOR, f"{kind(machine.jar)}:{project_version()}").replace("\\\n", " ")
    _, *arguments = shlex.split(command)
    # A process may start slowly while other tests run.
    ivy = {"spark.jars.ivy": str(machine.folder / "ivy"), "spark.elastic.startTimeout": "1min"}
    # In the repository, the jar's folder is below three parts of its group, its artifact and its version.
    folder = machine.jar.parents[5]
    with machine.running(["--repositories", folder.as_uri(), *arguments, "ask"], conf=ivy) as process:
        partitions = process.wait_for_line(r"partitions: (\d+)", PATIENCE_S)
        assert int(partitions[1]) == (SLOTS if MOVES_STATE else 4 * SLOTS), process.log_tail()
        assert process.wait(PATIENCE_S) == 0, process.log_tail()
    assert '"reactive"' in (machine.folder / "overview.json").read_text()
    assert '"start_' in (machine.folder / "decisions.json").read_text()


@pytest.mark.matrix
def test_a_python_that_is_too_old_is_said_once_and_the_application_runs(machine: Machine) -> None:
    old = machine.folder / "old.py"
    old.write_text(
        "import runpy, sys\nsys.version_info = (3, 9, 18, 'final', 0)\nsys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    python = program(
        machine.folder / "python3.9", ["/usr/bin/env", "PATH=", sys.executable, str(old)], pass_arguments=True
    )
    conf = {
        "spark.plugins": "org.apache.spark.elastic.ElasticPlugin",
        "spark.elastic.schedulerMode": "reactive",
        "spark.elastic.python": python,
    }
    with machine.running(["--jars", str(machine.jar), "app.py"], conf=conf) as process:
        partitions = process.wait_for_line(r"partitions: (\d+)", PATIENCE_S)
        assert int(partitions[1]) == PLAIN
        assert process.wait(PATIENCE_S) == 0, process.log_tail()
    lines = (machine.folder / "driver.log").read_text().splitlines()
    (said,) = (line for line in lines if "off, the application continues as plain Spark" in line)
    assert "the policy process cannot run" in said
    assert "(Python 3.9.18) is too old: the policy engine needs Python 3.10 or later" in said
    assert not [line for line in lines if "restarting the policy process" in line]


def kind(jar: Path) -> str:
    """Return the Spark and Scala of a jar, according to its name."""
    return jar.name.removeprefix("spark-elastic_").partition("-")[0]
