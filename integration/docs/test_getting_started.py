"""Tests that the commands in "Getting started" turn the plugin on, in a real Spark."""

from __future__ import annotations

import json
import shlex
from contextlib import closing
from pathlib import Path

import pytest

from integration.docs.machine import FIRST, PAGE, PLAIN, SLOTS, Machine, shown, shown_python
from integration.jdk_tools import JAR, compile_java, run_tool
from integration.streaming.waiting import PATIENCE_S, eventually
from spark_elastic_lab.demo.broker import ReservedPorts
from tests.unit.docs.pages import Block

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

SUBMIT = "spark-submit $(spark-elastic conf --mode reactive) app.py"
APPEND = "spark-elastic conf --format defaults >> $SPARK_HOME/conf/spark-defaults.conf"
SHELL = "spark-shell $(spark-elastic conf --mode reactive)"
DOCTOR = "spark-elastic doctor"
JAVA = "spark-submit $(spark-elastic conf --mode reactive) --class Main app.jar"
THRIFT = "$SPARK_HOME/sbin/start-thriftserver.sh $(spark-elastic conf --mode reactive)"

_SESSION = """\
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
"""
# A plain application that prints the number of partitions of its state after the first rows.
_APPLICATION = """\
import time

rows = spark.readStream.format("rate").load().selectExpr("value % 7 AS key")
query = rows.groupBy("key").count().writeStream.format("noop").outputMode("update").start()
while not any(progress["numInputRows"] for progress in query.recentProgress):
    if not query.isActive:
        raise SystemExit(f"the query has ended: {query.exception()}")
    time.sleep(0.2)
# In one piece: Spark runs Python unbuffered, and lines of the log come between pieces.
partitions = query.lastProgress["stateOperators"][0]["numShufflePartitions"]
print(f"partitions: {partitions}\\n", end="", flush=True)
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
_IN_JAVA = """\
import java.util.Arrays;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.StreamingQuery;

public class Main {
  public static void main(String[] arguments) throws Exception {
    SparkSession spark = SparkSession.builder().getOrCreate();
    StreamingQuery query = spark.readStream().format("rate").load().selectExpr("value % 7 AS key")
        .groupBy("key").count().writeStream().format("noop").outputMode("update").start();
    while (query.isActive() && Arrays.stream(query.recentProgress()).allMatch(one -> one.numInputRows() == 0))
      Thread.sleep(200);
    System.out.println("partitions: " + query.lastProgress().stateOperators()[0].numShufflePartitions());
    query.stop();
  }
}
"""
# Its start script runs this class, and is not in the PySpark that pip installs.
_THRIFT_SERVER = "--class org.apache.spark.sql.hive.thriftserver.HiveThriftServer2 spark-internal"


@pytest.fixture
def machine(machine: Machine) -> Machine:
    """Put a plain application there."""
    (machine.folder / "app.py").write_text(_SESSION + _APPLICATION)
    return machine


@pytest.fixture
def sql() -> Block:
    """The commands that the page shows for spark-sql."""
    (block,) = (block for block in PAGE.blocks if block.text.startswith("$ spark-sql"))
    return block


def keep_a_journal(machine: Machine) -> Path:
    """Let the plugin keep a journal; return its folder."""
    folder = machine.folder / "journal"
    with (machine.home / "conf" / "spark-defaults.conf").open("a") as defaults:
        defaults.write(f"spark.elastic.journal.dir {folder}\n")
    return folder


def partitions_of_a_shuffle(journal: Path) -> set[int]:
    """Return the initial numbers of partitions of batch shuffles that the policy decided."""
    lines = [json.loads(line) for file in journal.glob("*.jsonl") for line in file.read_text().splitlines()]
    answers = [line["stage"]["answer"] for line in lines if "stage" in line]
    return {answer["partitions"] for answer in answers if answer["type"] == "InitialCountAnswer"}


@pytest.mark.matrix
def test_without_the_plugin_it_is_plain_spark(machine: Machine) -> None:
    assert machine.partitions("spark-submit app.py") == PLAIN


def test_the_flags_turn_it_on(machine: Machine) -> None:
    assert machine.partitions(shown(SUBMIT)) == FIRST


def test_the_lines_in_the_defaults_turn_it_on_and_the_doctor_is_content(machine: Machine) -> None:
    appended = machine.run(shown(APPEND))
    assert appended.returncode == 0, appended.stderr
    doctor = machine.run(shown(DOCTOR))
    assert doctor.returncode == 0, doctor.stdout
    assert machine.partitions("spark-submit app.py") == FIRST


@pytest.mark.matrix
def test_the_lines_of_python_turn_it_on(machine: Machine) -> None:
    (machine.folder / "app.py").write_text(f"{shown_python()}\n{_APPLICATION}")
    assert machine.partitions("python app.py") == FIRST


@pytest.mark.matrix
def test_the_flags_turn_it_on_for_the_shell(machine: Machine) -> None:
    (machine.folder / "app.scala").write_text(_IN_SCALA)
    assert machine.partitions(f"{shown(SHELL)} < app.scala") == FIRST


@pytest.mark.matrix
def test_the_flags_turn_it_on_for_an_application_without_python(machine: Machine) -> None:
    source, classes, jar = (machine.folder / name for name in ("Main.java", "classes", "app.jar"))
    source.write_text(_IN_JAVA)
    compile_java(source, classes)
    run_tool(JAR, "--create", "--file", jar, "-C", classes, ".")
    assert machine.partitions(shown(JAVA)) == FIRST


@pytest.mark.matrix
def test_the_flags_turn_it_on_for_sql(machine: Machine, sql: Block) -> None:
    journal = keep_a_journal(machine)
    line, *output = sql.text.splitlines()

    def decided() -> set[int]:
        done = machine.run(line.removeprefix("$ "))
        assert done.returncode == 0, done.stderr
        assert sorted(done.stdout.splitlines()) == sorted(output)
        return partitions_of_a_shuffle(journal)

    # On a busy machine the statement may end before there is a policy to ask.
    assert eventually(decided, "a shuffle is decided about") == {2 * SLOTS}


@pytest.mark.slow
def test_the_flags_turn_it_on_for_the_thrift_server(machine: Machine, sql: Block) -> None:
    journal = keep_a_journal(machine)
    line, *output = sql.text.splitlines()
    flags = shown(THRIFT).partition(" ")[2]
    with closing(ReservedPorts(1)) as ports:
        (port,) = ports.numbers
        place = f"hive.server2.thrift.port={port} --hiveconf hive.server2.thrift.bind.host=127.0.0.1"
        with machine.typing(f"exec spark-submit {flags} {_THRIFT_SERVER} --hiveconf {place}") as server:
            server.wait_for_line("HiveThriftServer2 started", PATIENCE_S)
            beeline = f"beeline -u jdbc:hive2://127.0.0.1:{port}/ --outputformat=tsv2"
            done = machine.run(f"{beeline} -e '{shlex.split(line)[-1]}'")
        assert done.returncode == 0, done.stderr
        # It prints its prompt as well.
        assert set(output) <= set(done.stdout.splitlines())
        assert partitions_of_a_shuffle(journal) == {2 * SLOTS}
