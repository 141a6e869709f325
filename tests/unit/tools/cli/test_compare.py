"""Tests of `spark-elastic compare`, as a user calls it, with a stand-in for spark-submit."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from click.testing import CliRunner, Result

from spark_elastic import __version__
from spark_elastic.jar import JarNotFoundError
from spark_elastic_lab.compare import cost
from spark_elastic_tools.cli import compare as compare_command
from spark_elastic_tools.cli.main import cli
from spark_elastic_tools.maven import NotPublishedError
from tests.unit.lab.compare import fake_submit

JAR = f"spark-elastic_4.2_2.13-{__version__}.jar"
SAME = {
    "format": "parquet",
    "rows": {"plain": 7, "elastic": 7},
    "sameSchema": True,
    "schema": {"plain": [["x", "double"]], "elastic": [["x", "double"]]},
    "digits": None,
    "onlyInPlain": 0,
    "onlyInElastic": 0,
    "exact": {"onlyInPlain": 0, "onlyInElastic": 0},
}


@frozen
class Machine:
    """A machine with the stand-in on its PATH, and a Spark without anything but its version."""

    folder: Path
    spark: Path

    @property
    def calls(self) -> list[Any]:
        file = self.folder / "calls"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def defaults(self, text: str) -> None:
        (self.spark / "conf" / "spark-defaults.conf").write_text(text)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    home, programs = tmp_path / "spark", tmp_path / "bin"
    for folder in (home / "jars", home / "conf", programs):
        folder.mkdir(parents=True)
    (home / "jars" / "spark-core_2.13-4.2.0.jar").touch()
    for name in ("spark-submit", "spark-sql"):
        program = programs / name
        program.write_text(
            f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(fake_submit.__file__)} "$@"\n'
        )
        program.chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(home))
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("FAKE_OUTPUTS", json.dumps(SAME))
    monkeypatch.setattr(compare_command, "jar_path", lambda spark: tmp_path / JAR)

    def absent(*coordinates: str, transitive: bool) -> list[Path]:
        raise NotPublishedError(f"no {coordinates}")

    monkeypatch.setattr(cost, "fetch", absent)
    return Machine(tmp_path, home)


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, ["compare", *words])


def data(*words: str) -> Any:
    result = run("--json", *words)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


SUBMIT = ("--", "spark-submit", "--master", "local[2]", "app.py", "--conf", "spark.plugins=its.own")


def elastic(calls: Sequence[Any]) -> list[bool]:
    return [call["elastic"] for call in calls]


def test_the_order_alternates_and_each_side_gets_its_own_settings(machine: Machine) -> None:
    result = data("--rounds", "3", *SUBMIT)
    assert elastic(machine.calls) == [False, True, True, False, False, True]
    assert [(one["round"], one["side"]) for one in result["runs"]] == [
        (number, side)
        for number, sides in ((1, "plain elastic"), (2, "elastic plain"), (3, "plain elastic"))
        for side in sides.split()
    ]
    plain, with_plugin = (call["words"] for call in machine.calls[:2])
    for words in (plain, with_plugin):
        # The application's own arguments are left alone, and Spark's options are before it.
        assert words[-3:] == ["app.py", "--conf", "spark.plugins=its.own"]
        assert "spark.eventLog.enabled=true" in words[: words.index("app.py")]
    assert result["added"]["plain"] == []
    assert "spark.elastic.schedulerMode=reactive" in result["added"]["elastic"]
    assert set(result["added"]["elastic"]) <= set(with_plugin)
    assert with_plugin[with_plugin.index("--jars") + 1] == str(machine.folder / JAR)


def test_what_was_measured_is_summed_up_in_text_and_data(machine: Machine) -> None:
    result = data("--rounds", "2", *SUBMIT)
    assert result["measuredBy"] == "the event log"
    found = result["metrics"]
    assert found["tasks"] == {
        "plain": 8,
        "elastic": 2,
        "ratio": 0.25,
        "lowestRatio": 0.25,
        "highestRatio": 0.25,
    }
    assert found["executorSeconds"]["plain"] == 9
    assert (found["cpuSeconds"]["plain"], found["taskSeconds"]["plain"]) == (1.5, 4)
    assert (found["bytesRead"]["plain"], found["shuffleBytesRead"]["plain"]) == (2_048, 111)
    assert found["diskBytesSpilled"] == {
        "plain": 0,
        "elastic": 0,
        "ratio": None,
        "lowestRatio": None,
        "highestRatio": None,
    }
    assert result["output"]["same"] is None
    text = run("--rounds", "2", *SUBMIT)
    assert "tasks                     8           2   0.25 ×  0.25–0.25" in text.stdout
    assert "not compared: type {side} in the path" in text.stdout
    assert text.stderr.count("without sparkMeasure") == 1
    assert "Maven has no sparkMeasure" in text.stderr


def test_spark_measure_is_used_if_its_jar_is_there(machine: Machine) -> None:
    jar = machine.folder / "measure.jar"
    jar.touch()
    machine.defaults("spark.extraListeners a.Listener\nspark.driver.extraClassPath /opt/a.jar\n")
    result = data("-n", "1", "--measure-jar", str(jar), *SUBMIT)
    assert result["measuredBy"] == "sparkMeasure (measure.jar)"
    assert result["metrics"]["tasks"]["plain"] == 5
    plain, with_plugin = (call["words"] for call in machine.calls)
    assert "spark.extraListeners=a.Listener,ch.cern.sparkmeasure.FlightRecorderStageMetrics" in plain
    paths = [words[words.index("--driver-class-path") + 1] for words in (plain, with_plugin)]
    assert paths == [f"/opt/a.jar:{jar}", f"/opt/a.jar:{machine.folder / JAR}:{jar}"]


def test_a_jar_for_another_scala_is_refused_before_anything_runs(machine: Machine) -> None:
    jar = machine.folder / "spark-measure_2.12-0.24.jar"
    jar.touch()
    result = run("--measure-jar", str(jar), *SUBMIT)
    assert result.exit_code == 2
    assert "is for Scala 2.12, but Spark 4.2.0 with Scala 2.13 is not" in " ".join(result.stderr.split())
    assert machine.calls == []


def test_lists_in_the_command_are_kept(machine: Machine) -> None:
    data("-n", "1", "--", "spark-submit", "--jars", "a.jar", "--conf", "spark.plugins=a.Plugin", "app.py")
    plain, with_plugin = machine.calls
    assert plain["conf"]["spark.plugins"] == "a.Plugin"
    assert with_plugin["conf"]["spark.plugins"] == "a.Plugin,org.apache.spark.elastic.ElasticPlugin"
    words = with_plugin["words"]
    lists = [words[at + 1] for at, word in enumerate(words) if word == "--jars"]
    assert lists[-1] == f"a.jar,{machine.folder / JAR}"


def test_a_plugin_that_is_on_already_is_off_on_the_plain_side(machine: Machine) -> None:
    policies = machine.folder / "policy.yaml"
    policies.touch()
    machine.defaults(
        "spark.plugins org.apache.spark.elastic.ElasticPlugin\nspark.elastic.schedulerMode adaptive\n"
        "spark.elastic.query.a.schedulerMode reactive\n"
    )
    result = data("-n", "1", "--policy-file", str(policies), *SUBMIT)
    assert result["mode"] == "adaptive"
    assert result["added"]["plain"] == [
        *("--conf", "spark.elastic.schedulerMode=off"),
        *("--conf", "spark.elastic.query.a.schedulerMode=off"),
    ]
    assert f"spark.elastic.policyFile={policies}" in result["added"]["elastic"]


def test_a_plugin_that_is_set_to_off_leaves_nothing_to_compare(machine: Machine) -> None:
    machine.defaults("spark.elastic.schedulerMode off\n")
    for words in ((), ("--mode", "reactive")):
        result = run(*words, *SUBMIT)
        assert result.exit_code == 1
        assert "spark.elastic.schedulerMode is 'off'" in result.stderr
    assert machine.calls == []


def test_spark_sql_gets_its_options_at_the_end(machine: Machine) -> None:
    data("-n", "1", "--", "spark-sql", "-e", "select 1")
    assert machine.calls[0]["words"][:2] == ["-e", "select 1"]


OUTPUT = ("--output", "out/{side}-{round}", "--", "spark-submit", "app.py", "out/{side}-{round}")


def test_outputs_are_compared_by_spark(machine: Machine) -> None:
    machine.defaults("spark.plugins a.Plugin\nspark.hadoop.fs.s3a.endpoint here\n")
    result = data("-n", "2", "--reader-option", "header=true", *OUTPUT)
    assert result["output"]["same"] is True
    assert [call["words"][-1] for call in machine.calls[:4]] == [
        "out/plain-1",
        "out/elastic-1",
        "out/elastic-2",
        "out/plain-2",
    ]
    conf = machine.calls[4]["conf"]
    assert (conf["spark.plugins"], conf["spark.hadoop.fs.s3a.endpoint"]) == ("", "here")
    assert conf["spark.master"] == "local[*]"


def test_both_are_asked_for_by_their_last_round(machine: Machine, tmp_path: Path) -> None:
    keep = tmp_path / "keep"
    assert run("-n", "2", "--keep", str(keep), "--reader-option", "a=b", *OUTPUT).exit_code == 0
    asked = json.loads((keep / "request.json").read_text())
    assert (asked["plain"], asked["elastic"], asked["options"]) == (
        "out/plain-2",
        "out/elastic-2",
        {"a": "b"},
    )
    assert (keep / "1-plain" / "events" / "local-1").is_file()
    again = run("--keep", str(keep), *SUBMIT)
    assert again.exit_code == 2
    assert "name a new folder" in again.stderr


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({**SAME, "onlyInPlain": 2, "onlyInElastic": 1}, "DIFFERENT rows: of 7 of plain 2"),
        ({**SAME, "sameSchema": False, "onlyInPlain": None, "onlyInElastic": None}, "DIFFERENT columns"),
        ({"error": "plain wrote nothing to out/plain-1"}, "not compared: plain wrote nothing"),
    ],
)
def test_outputs_that_differ_fail(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, answer: Any, words: str
) -> None:
    monkeypatch.setenv("FAKE_OUTPUTS", json.dumps(answer))
    result = run("-n", "1", *OUTPUT)
    assert result.exit_code == 1
    assert words in result.stdout
    assert json.loads(run("-n", "1", "--json", *OUTPUT).stdout)["output"]["same"] is not True


def test_digits_that_differ_are_said(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {
        **SAME,
        "digits": {"double": 10, "float": 5},
        "exact": {"onlyInPlain": 3, "onlyInElastic": 3},
    }
    monkeypatch.setenv("FAKE_OUTPUTS", json.dumps(answer))
    result = run("-n", "1", *OUTPUT)
    assert result.exit_code == 0
    assert "the same 7 rows (parquet); 3 only in the first 10 digits of doubles" in result.stdout


@pytest.mark.parametrize("side", ["plain", "elastic"])
def test_a_run_that_fails_ends_it_with_its_last_lines(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    monkeypatch.setenv("FAKE_FAILS", side)
    result = run("-n", "2", *OUTPUT)
    assert result.exit_code == 1
    assert f"round 1, {side}: the application failed with exit code 3\nException: no such" in result.stdout
    assert "×" not in result.stdout
    found = json.loads(run("-n", "2", "--json", *OUTPUT).stdout)
    assert found["failed"]["exitCode"] == 3
    assert (found["failed"]["side"], found["failed"]["log"]) == (side, ["Exception: no such column"])
    assert (found["metrics"], found["output"]) == (None, None)
    assert len(found["runs"]) == (0 if side == "plain" else 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "there is no command after --: type spark-elastic compare -- spark-submit app.py"),
        (("--", "python", "app.py"), "'python' is none of spark-submit, pyspark, spark-sql"),
        (("--", "spark-submit", "--master", "local"), "names no application"),
        (("--", "/nowhere/spark-submit", "a.py"), "/nowhere/spark-submit is not on the PATH"),
        (("-n", "0", *SUBMIT), "0 is not in the range x>=1"),
        (("--", "spark-submit", "--deploy-mode", "cluster", "a.py"), "type --deploy-mode client"),
        (("--", "spark-submit", "--properties-file", "nope", "a.py"), "nope cannot be read"),
        (("--output", "out", *SUBMIT), "--output out has no {side}"),
        (("--output", "out/{side}", *SUBMIT), "has {side}, but the command has not"),
        (("--reader-option", "header", *SUBMIT), "type --reader-option header=true"),
    ],
)
def test_what_is_typed_wrong_is_named(machine: Machine, words: tuple[str, ...], said: str) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert machine.calls == []


def test_a_spark_without_a_jar_of_ours_is_named(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(spark: object) -> Path:
        raise JarNotFoundError("Spark 2.4 is not supported")

    monkeypatch.setattr(compare_command, "jar_path", none)
    result = run(*SUBMIT)
    assert result.exit_code == 1
    assert "Spark 2.4 is not supported" in result.stderr


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_the_job_that_runs(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    waiting = machine.folder / "waiting"
    os.mkfifo(waiting)
    monkeypatch.setenv("FAKE_WAITS", str(waiting))
    jar = machine.folder / "measure.jar"
    jar.touch()
    program = (
        "import sys; from pathlib import Path; from spark_elastic_tools.cli import compare, main; "
        f"compare.jar_path = lambda spark: Path({str(machine.folder / JAR)!r}); main.main()"
    )
    words = [sys.executable, "-c", program, "compare", "--measure-jar", str(jar), *SUBMIT]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        job = int(waiting.read_text())  # returns as soon as the job has written its id
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted: the job that ran was ended" in said
    with pytest.raises(ProcessLookupError):
        os.kill(job, 0)
