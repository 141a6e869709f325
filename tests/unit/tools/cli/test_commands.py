"""Tests of the commands conf, jar, doctor and replay, as a user calls them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spark_elastic import __version__
from spark_elastic.installation import Spark
from spark_elastic.jar import JarNotFoundError
from spark_elastic.spark_conf import DRIVER_CLASS_PATH, JARS, PLUGIN, PLUGINS
from spark_elastic_tools.cli import checks
from spark_elastic_tools.cli import conf as conf_command
from spark_elastic_tools.cli import jar as jar_command
from spark_elastic_tools.cli.main import cli
from tests.unit.runtime.short_run import short_run

NAME = f"spark-elastic_4.2_2.13-{__version__}.jar"


@pytest.fixture(autouse=True)
def installation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Provide a jar without a build, and hide this machine's spark-defaults.conf."""
    jar = tmp_path / "lib" / NAME
    jar.parent.mkdir()
    jar.write_bytes(b"")
    for module in (checks, conf_command, jar_command):
        monkeypatch.setattr(module, "jar_path", lambda version=None: jar)
    empty = tmp_path / "conf"
    empty.mkdir()
    monkeypatch.setenv("SPARK_CONF_DIR", str(empty))
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, sys.executable)
    return jar


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def properties(folder: Path, **conf: str) -> Path:
    file = folder / "some.conf"
    file.write_text("".join(f"{key} {value}\n" for key, value in conf.items()))
    return file


def test_the_group_lists_its_commands() -> None:
    result = run("--help")
    assert result.exit_code == 0
    asking = ("status", "watch", "explain", "history", "rescale", "savepoint", "stop")
    for name in ("conf", "jar", "init-script", "doctor", "replay", "demo", "completion", *asking):
        assert f"\n  {name} " in result.output
    assert run("moonrose").exit_code == 2
    assert "\n    5  no such query" in result.output
    assert __version__ in run("--version").output


def test_conf_prints_flags_that_survive_the_shell_unquoted(installation: Path) -> None:
    words = run("conf", "--mode", "reactive").output.split()
    assert words[::2] == ["--conf"] * 5
    settings = dict(word.split("=", 1) for word in words[1::2])
    assert settings[PLUGINS] == PLUGIN
    assert settings[JARS] == settings[DRIVER_CLASS_PATH] == str(installation)
    assert settings["spark.elastic.schedulerMode"] == "reactive"
    assert settings["spark.elastic.python"] == sys.executable


def test_all_forms_of_conf_say_the_same(tmp_path: Path) -> None:
    settings = json.loads(run("conf", "--format", "json").output)
    words = shlex.split(run("conf", "--format", "shell").output)
    assert dict(word.split("=", 1) for word in words[1::2]) == settings
    lines = run("conf", "--format", "defaults").output.splitlines()
    assert dict(line.split(None, 1) for line in lines) == settings


def test_conf_adds_to_what_is_in_the_defaults(tmp_path: Path) -> None:
    file = properties(tmp_path, **{PLUGINS: "org.x.P", "spark.elastic.scheduler-mode": "off"})
    settings = json.loads(run("conf", "--format", "json", "--properties-file", file).output)
    assert settings[PLUGINS] == f"org.x.P,{PLUGIN}"
    assert "spark.elastic.schedulerMode" not in settings
    result = run("conf", "--mode", "reactive", "--properties-file", file)
    assert result.exit_code == 1
    assert "remove it, or ask for that mode" in result.output


def test_conf_says_what_to_do_about_blanks_in_a_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(conf_command, "jar_path", lambda version: tmp_path / "a folder" / NAME)
    result = run("conf")
    assert result.exit_code == 1
    assert "--format shell" in result.output
    words = shlex.split(run("conf", "--format", "shell").output)
    assert f"{JARS}={tmp_path / 'a folder' / NAME}" in words


def test_jar_prints_the_path_or_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, installation: Path
) -> None:
    assert run("jar").output == f"{installation}\n"

    def none(spark: Spark | None) -> Path:
        raise JarNotFoundError(f"no jar for {spark}: type something")

    monkeypatch.setattr(jar_command, "jar_path", none)
    result = run("jar", "--spark", "1.6")
    assert (result.exit_code, result.output) == (1, "Error: no jar for Spark 1.6: type something\n")
    assert "no jar for Spark 3.5 with Scala 2.13: " in run("jar", "--spark", "3.5_2.13").output


def test_the_jar_goes_with_the_scala_of_spark_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Spark | None] = []
    monkeypatch.setattr(jar_command, "jar_path", asked.append)
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.13-3.5.5-amzn-0.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    run("jar")
    assert asked == [Spark("3.5.5-amzn-0", "2.13")]


def doctor(*arguments: str | Path) -> tuple[int, dict[str, list[str]], str]:
    """Return exit code, the states of all checks except Java's, and the output."""
    result = run("doctor", "--json", *arguments)
    states: dict[str, list[str]] = {}
    for check in json.loads(result.output):
        assert (check["status"] == "ok") == (check["change"] is None)
        if check["check"] != "java":
            states.setdefault(check["check"], []).append(check["status"])
    return result.exit_code, states, result.output


def good(jar: Path, **more: str) -> dict[str, str]:
    return {
        PLUGINS: PLUGIN,
        JARS: str(jar),
        DRIVER_CLASS_PATH: str(jar),
        "spark.elastic.python": sys.executable,
        **more,
    }


def test_doctor_is_content_with_what_conf_prints(tmp_path: Path, installation: Path) -> None:
    file = tmp_path / "printed.conf"
    file.write_text(run("conf", "--format", "defaults").output)
    _, states, said = doctor("--properties-file", file)
    assert {state for found in states.values() for state in found} == {"ok"}, said
    plain = run("doctor", "--properties-file", file)
    *checked, last = plain.output.splitlines()
    assert [line.split()[0] for line in checked if " java " not in line] == ["ok"] * 9
    assert last == "ready: type spark-submit app.py"


def test_doctor_fails_on_each_bad_setting_and_says_what_to_type(tmp_path: Path, installation: Path) -> None:
    conf = good(installation, **{"spark.elastic.nonsense": "1", "spark.elastic.adviseOnly": "si"})
    code, states, said = doctor("--properties-file", properties(tmp_path, **conf))
    assert code == 1
    assert states["settings"] == ["fail", "fail"]
    last = run("doctor", "--properties-file", tmp_path / "some.conf").output.splitlines()[-1]
    assert last == "not ready: repair settings, then type spark-elastic doctor again"
    assert "set spark.elastic.adviseOnly=false" in said


@pytest.mark.parametrize(
    ("text", "state", "words"),
    [
        ("version: 1\nqueries: {counts: {upperBound: 4}}\n", "ok", "names counts"),
        ("version: 1\nqueries: {counts: {upperBound: 0}}\n", "fail", "queries.counts.upperBound"),
        (None, "fail", "cannot be read (No such file or directory)"),
    ],
)
def test_doctor_reads_the_policy_file(
    tmp_path: Path, installation: Path, text: str | None, state: str, words: str
) -> None:
    file = tmp_path / "policy.yaml"
    if text is not None:
        file.write_text(text)
    conf = good(installation, **{"spark.elastic.policyFile": str(file)})
    _, states, said = doctor("--properties-file", properties(tmp_path, **conf))
    assert states["policy file"] == [state]
    assert words in said


def test_doctor_says_what_each_name_will_have_and_what_contradicts_itself(
    tmp_path: Path, installation: Path
) -> None:
    file = tmp_path / "policy.yaml"
    backoff = "restartStrategy.exponentialDelay"
    file.write_text(
        f"version: 1\nqueries:\n  orders-*: {{maxParallelism: 4}}\n"
        f"  orders-eu: {{{backoff}.maxBackoff: 5s}}\n  orders-us: {{stateStore: unchanged}}\n"
    )
    own = {
        "spark.elastic.policyFile": str(file),
        "spark.elastic.query.*.schedulerMode": "reactive",
        "spark.elastic.query.legacy.schedulerMode": "off",
        f"spark.elastic.{backoff}.initialBackoff": "9s",
    }
    code, states, said = doctor("--properties-file", properties(tmp_path, **good(installation, **own)))
    assert states["query settings"] == ["ok", "ok", "fail", "ok"]
    assert "legacy: schedulerMode is off" in said
    assert "orders-us: stateStore is unchanged, maxParallelism is 4" in said
    assert f"orders-eu: spark.elastic.query.orders-eu.{backoff}.maxBackoff is '5s'" in said
    assert code == 1


def test_doctor_warns_of_others_that_scale(tmp_path: Path, installation: Path) -> None:
    conf = good(installation, **{"spark.dynamicAllocation.enabled": "true"})
    _, states, said = doctor("--properties-file", properties(tmp_path, **conf))
    assert states["conflicts"] == ["warn"]
    assert "set spark.dynamicAllocation.enabled to false" in said


@pytest.mark.parametrize(
    ("store", "words"),
    [
        ("rescalable", "need spark.sql.streaming.stateStore.checkpointFormatVersion=2"),
        ("unchanged", "in the format that each application chooses"),
        ("round", "not looked at"),
    ],
)
def test_doctor_says_what_checkpoints_need_without_the_plugin(
    tmp_path: Path, installation: Path, store: str, words: str
) -> None:
    conf = good(installation, **{"spark.elastic.stateStore": store})
    file = properties(tmp_path, **conf)
    _, states, _ = doctor("--properties-file", file)
    assert states["checkpoints"] == ["ok"]
    (line,) = (line for line in run("doctor", "--properties-file", file).output.splitlines() if words in line)
    assert "checkpoints" in line


@pytest.mark.parametrize(("version", "words"), [("4.1.2", "needs nothing"), ("4.2.0", "need spark.sql")])
def test_before_spark_re_partitions_state_no_checkpoint_needs_anything(version: str, words: str) -> None:
    assert words in checks.checkpoints({}, Spark(version, "2.13")).found
    assert "need spark.sql" in checks.checkpoints({}, None).found


def test_doctor_finds_a_plugin_without_a_jar(tmp_path: Path, installation: Path) -> None:
    file = properties(tmp_path, **{PLUGINS: PLUGIN, "spark.elastic.python": sys.executable})
    code, states, said = doctor("--properties-file", file)
    assert (code, states["class path"]) == (1, ["fail"])
    assert f"add {DRIVER_CLASS_PATH} {installation}" in said


def test_doctor_takes_one_place_of_the_jar_for_enough(tmp_path: Path, installation: Path) -> None:
    file = properties(
        tmp_path,
        **{PLUGINS: PLUGIN, DRIVER_CLASS_PATH: str(installation), "spark.elastic.python": sys.executable},
    )
    _, states, _ = doctor("--properties-file", file)
    assert states["class path"] == ["ok"]


@pytest.mark.parametrize(
    ("name", "state"), [(NAME, "ok"), ("spark-elastic_4.2_2.13-0.0.1.jar", "fail")], ids=["ours", "older"]
)
def test_doctor_finds_a_jar_beside_sparks_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, state: str
) -> None:
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    for jar in ("spark-core_2.13-4.2.0.jar", name):
        (tmp_path / "spark" / "jars" / jar).touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    file = properties(tmp_path, **{PLUGINS: PLUGIN, "spark.elastic.python": sys.executable})
    _, states, said = doctor("--properties-file", file)
    assert states["class path"] == [state]
    assert ("is of another version" in said) == (state == "fail")


@pytest.mark.parametrize(("version", "lacks"), [("4.2.0", 0), ("4.1.4", 1), ("3.5.9", 3)])
def test_doctor_says_what_an_earlier_spark_is_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, lacks: int
) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / f"spark-core_2.13-{version}.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    _, states, said = doctor()
    assert states.get("lacks", []) == lacks * ["warn"]
    assert (f"Spark {version} with Scala 2.13 lacks moving state" in said) == (lacks > 0)
    assert ("use Spark 4.2 or later if you need it" in said) == (lacks > 0)


@pytest.mark.parametrize("name", [NAME, "spark-elastic_4.2_2.13-0.0.1.jar"])
def test_doctor_finds_a_jar_that_is_gone_or_of_another_version(
    tmp_path: Path, installation: Path, name: str
) -> None:
    elsewhere = str(tmp_path / "elsewhere" / name)
    conf = good(installation, **{JARS: elsewhere, DRIVER_CLASS_PATH: elsewhere})
    code, states, said = doctor("--properties-file", properties(tmp_path, **conf))
    assert (code, states["class path"]) == (1, ["fail"])
    assert f"replace it by {installation}" in said


def test_doctor_warns_of_defaults_without_the_plugin(tmp_path: Path) -> None:
    _, states, _ = doctor("--properties-file", properties(tmp_path, **{"spark.master": "local"}))
    assert states["plugin"] == ["warn"]


def test_doctor_tries_the_python_of_the_policy(tmp_path: Path, installation: Path) -> None:
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\necho 0.0.1\n")
    other.chmod(0o755)
    for program, says in ((str(other), "has spark-elastic 0.0.1"), ("/nowhere/python", "does not run")):
        conf = good(installation, **{"spark.elastic.python": program})
        code, states, said = doctor("--properties-file", properties(tmp_path, **conf))
        assert (code, states["policy"]) == (1, ["fail"])
        assert says in said


def test_doctor_without_any_defaults_or_with_a_missing_file(tmp_path: Path) -> None:
    _, states, _ = doctor()
    assert states["settings"] == ["ok"]
    code, states, _ = doctor("--properties-file", tmp_path / "none")
    assert (code, states["settings"]) == (1, ["fail"])


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return short_run(tmp_path / "journal")


def test_replay_ends_with_0_when_all_is_the_same(journal: Path) -> None:
    result = run("replay", journal)
    assert (result.exit_code, result.output.split(":")[0]) == (0, "the same")


def test_replay_ends_with_1_and_shows_the_difference(journal: Path) -> None:
    journal.write_text(journal.read_text().replace('"start_wait_ms":10000', '"start_wait_ms":5'))
    result = run("replay", journal)
    assert result.exit_code == 1
    first, event, recorded, replayed = result.output.splitlines()
    assert first == f"different at {journal}:2"
    assert '"Snapshot"' in event
    assert '"start_wait_ms": 5' in recorded
    assert '"start_wait_ms": 10000' in replayed


def test_replay_ends_with_2_when_there_is_no_journal(tmp_path: Path) -> None:
    result = run("replay", tmp_path / "none")
    assert result.exit_code == 2
    assert "No such file" in result.output


def test_without_click_one_line_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['click'] = None; import spark_elastic_tools.cli.main"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert run.returncode == 1
    assert run.stderr == "spark-elastic: click is not installed: type `pip install 'spark-elastic[cli]'`\n"


def test_doctor_passes_over_a_driver_python_that_is_none(
    tmp_path: Path, installation: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = good(installation)
    del conf["spark.elastic.python"]
    file = properties(tmp_path, **conf)
    for driver in ("jupyter", "/opt/conda/bin/ipython", "notebook.sh"):
        monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", driver)
        _, states, said = doctor("--properties-file", file)
        assert states["policy"] == ["ok"]
        assert driver not in said


def test_doctor_names_wrong_jars_in_the_order_of_the_settings(tmp_path: Path, installation: Path) -> None:
    names = [f"/elsewhere/{number}/{installation.name}" for number in range(8)]
    conf = good(installation, **{DRIVER_CLASS_PATH: os.pathsep.join(names)})
    _, _, said = doctor("--properties-file", properties(tmp_path, **conf))
    found = [check["found"] for check in json.loads(said) if check["check"] == "class path"]
    assert found == [f"{name} does not exist" for name in names]
