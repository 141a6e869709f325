"""Tests of the bootstrap action for EMR, run by bash on a machine laid out like the platform's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_elastic import __version__
from spark_elastic.spark_conf import PLUGIN, read_properties
from tests.unit.tools.init_scripts.laid_out import (
    PATIENCE_S,
    WHEEL,
    Machine,
    jar_name,
    no_process_left,
    write_wheel,
)

pytestmark = pytest.mark.long

DEFAULTS = "etc/spark/conf/spark-defaults.conf"
THEIRS = """\
spark.master                     yarn
spark.driver.extraClassPath      /usr/lib/hadoop-lzo/lib/*
spark.dynamicAllocation.enabled  true
"""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A node during bootstrap actions: Spark is not installed yet."""
    made = Machine(tmp_path, {"SPARK_ELASTIC_WAIT_S": "30"})
    made.put_python(made.bin / "python3", "3.9")
    made.put_python(made.bin / "python3.11", "3.11")
    with no_process_left(made):
        yield made


def install_spark(machine: Machine, core: str = "spark-core_2.12-3.5.5-amzn-0.jar") -> None:
    """Install Spark as EMR does after bootstrap actions."""
    machine.put(DEFAULTS, THEIRS)
    machine.put("usr/lib/spark/RELEASE", "Spark 3.5.5-amzn-0 built for Hadoop 3.4.1-amzn-2")
    machine.put(f"usr/lib/spark/jars/{core}")


def placed(machine: Machine) -> list[str]:
    return [path.name for path in (machine.root / "usr/lib/spark/jars").glob("spark-elastic_*.jar")]


def eventually_said(machine: Machine, text: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while text not in machine.log("emr"):
        assert time.monotonic() < deadline, machine.log("emr")
        time.sleep(0.05)


def settings(machine: Machine) -> dict[str, str]:
    return read_properties(machine.root / DEFAULTS)


@pytest.mark.parametrize(
    ("core", "kind"),
    [
        ("spark-core_2.12-3.5.5-amzn-0.jar", "3.5_2.12"),
        ("spark-core_2.13-3.5.5-amzn-0.jar", "3.5_2.13"),
        ("spark-core_2.13-4.0.1-amzn-0.jar", "4.0_2.13"),
        ("spark-core_2.13-4.2.0.jar", "4.2_2.13"),
    ],
)
def test_the_jar_is_put_when_spark_has_come(machine: Machine, core: str, kind: str) -> None:
    result = machine.run(machine.write("emr"))
    assert (result.returncode, result.stderr) == (0, "")
    assert "waits in the background for Spark" in result.stdout
    assert placed(machine) == []
    install_spark(machine, core)
    eventually_said(machine, f"put {jar_name(kind)} into {machine.root}/usr/lib/spark/jars")
    eventually_said(machine, "done: spark-elastic")
    assert placed(machine) == [jar_name(kind)]
    # The settings are EMR's own until the user asks for more.
    assert settings(machine) == dict(line.split() for line in THEIRS.splitlines())


def test_bootstrap_leaves_a_python_with_the_policy(machine: Machine) -> None:
    machine.run(machine.write("emr"))
    assert "python3.11" in (machine.home / "bin" / "python").read_text()
    assert (machine.home / "engine" / "spark_elastic").is_dir()


def test_a_cluster_without_spark_is_told_so(machine: Machine) -> None:
    machine.run(machine.write("emr"), SPARK_ELASTIC_WAIT_S="1")
    eventually_said(machine, f"error: there is no Spark in {machine.root}/usr/lib/spark after 1 s: add the")
    eventually_said(machine, "continues without spark-elastic")


def test_the_step_turns_the_plugin_on_and_keeps_what_is_there(machine: Machine) -> None:
    install_spark(machine)
    result = machine.run(machine.write("emr"), "configure")
    assert (result.returncode, result.stderr) == (0, "")
    assert placed(machine) == [jar_name("3.5_2.12")]
    assert settings(machine) == {
        **dict(line.split() for line in THEIRS.splitlines()),
        "spark.plugins": PLUGIN,
        "spark.elastic.schedulerMode": "reactive",
        "spark.elastic.python": f"{machine.home}/bin/python",
    }
    assert (machine.root / DEFAULTS).read_text().startswith(THEIRS)


def test_a_second_step_changes_nothing_and_says_so(machine: Machine) -> None:
    install_spark(machine)
    script = machine.write("emr")
    machine.run(script, "configure")
    before = machine.tree()
    result = machine.run(script, "configure")
    assert f"nothing to do: spark-elastic {__version__} is installed already" in result.stdout
    assert machine.tree() == before


def test_a_second_bootstrap_changes_nothing(machine: Machine) -> None:
    script = machine.write("emr")
    install_spark(machine)
    machine.run(script)
    eventually_said(machine, "done: spark-elastic")
    eventually_said(machine, f"put {jar_name('3.5_2.12')} into")
    before = machine.tree()
    assert "nothing to do" in machine.run(script).stdout
    assert machine.tree() == before


def test_another_mode_takes_the_place_of_the_first(machine: Machine) -> None:
    install_spark(machine)
    machine.run(machine.write("emr"), "configure")
    machine.run(machine.write("emr", mode="adaptive"), "configure")
    assert settings(machine)["spark.elastic.schedulerMode"] == "adaptive"
    assert (machine.root / DEFAULTS).read_text().count("begin of spark-elastic") == 1


def test_other_plugins_stay_and_a_mode_that_is_set_counts(machine: Machine) -> None:
    install_spark(machine)
    machine.put(DEFAULTS, f"{THEIRS}spark.plugins=com.example.One\nspark.elastic.scheduler-mode adaptive\n")
    machine.run(machine.write("emr"), "configure")
    found = settings(machine)
    assert found["spark.plugins"] == f"com.example.One,{PLUGIN}"
    assert "spark.elastic.schedulerMode" not in found
    assert found["spark.elastic.scheduler-mode"] == "adaptive"


@pytest.mark.parametrize("strict", [False, True])
def test_a_spark_without_a_jar_is_not_told_of_the_plugin(machine: Machine, strict: bool) -> None:
    install_spark(machine, "spark-core_2.12-3.4.1-amzn-2.jar")
    result = machine.run(machine.write("emr", strict=strict), "configure")
    assert result.returncode == (1 if strict else 0)
    assert "has no jar for Spark 3.4 with Scala 2.12" in result.stdout
    assert (machine.root / DEFAULTS).read_text() == THEIRS


@pytest.mark.parametrize("strict", [False, True])
def test_the_platforms_python_alone_is_too_old(machine: Machine, strict: bool) -> None:
    (machine.bin / "python3.11").unlink()
    result = machine.run(machine.write("emr", strict=strict))
    assert result.returncode == (1 if strict else 0)
    assert (
        f"there is only {machine.bin}/python3 (3.9): a bootstrap action before this one has to do: "
        "sudo dnf install -y python3.11 python3.11-pip\n"
    ) in result.stdout
    assert not (machine.home / "engine").exists()


def test_there_may_be_no_python_at_all(machine: Machine) -> None:
    for name in ("python3", "python3.11"):
        (machine.bin / name).unlink()
    assert "and there is only none: a bootstrap action" in machine.run(machine.write("emr")).stdout


def test_files_come_from_a_bucket(machine: Machine, tmp_path: Path) -> None:
    bucket = machine.put_aws()
    write_wheel(bucket / "tools" / "elastic")
    install_spark(machine)
    script = machine.write("emr", place="s3://tools/elastic", files=bucket / "tools" / "elastic")
    machine.run(script, "configure")
    assert placed(machine) == [jar_name("3.5_2.12")]
    (call,) = [call for call in machine.calls if call.startswith("aws ")]
    assert call.startswith(f"aws s3 cp s3://tools/elastic/{WHEEL} ")


def test_a_bucket_that_cannot_be_read_is_named(machine: Machine, tmp_path: Path) -> None:
    script = machine.write("emr", place="s3://tools/elastic")
    assert "s3://tools/elastic cannot be read: there is no aws on PATH" in machine.run(script).stdout
    machine.put_aws()
    result = machine.run(script)
    assert f"error: s3://tools/elastic/{WHEEL} cannot be read, see " in result.stdout
    assert result.returncode == 0
    assert "No such file" in machine.log("emr")


@pytest.mark.parametrize("trouble", ["kill", "no room on the disk"])
def test_a_run_that_ended_half_way_is_done_again(machine: Machine, trouble: str) -> None:
    install_spark(machine)
    script = machine.write("emr")
    machine.trouble.write_text(trouble)
    machine.run(script, "configure")
    assert (machine.root / DEFAULTS).read_text() == THEIRS
    assert placed(machine) == []
    machine.run(script, "configure")
    assert settings(machine)["spark.plugins"] == PLUGIN
    assert placed(machine) == [jar_name("3.5_2.12")]


def test_what_is_not_an_action_is_refused(machine: Machine) -> None:
    result = machine.run(machine.write("emr"), "dance")
    assert "error: 'dance' is nothing that this script does: bootstrap" in result.stdout
    assert machine.calls == []
