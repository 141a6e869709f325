"""Tests that a real Spark starts with what the scripts for Databricks and EMR install.

The machines are laid out as the platforms document theirs, around the installed Spark: its own jars, programs
and Python, by links. The shim and the policy are only where the scripts have put them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from importlib import metadata, resources
from pathlib import Path

import pytest

from integration.spark_minor import MOVES_STATE
from integration.streaming.files import Inbox
from integration.streaming.launch import APPS
from integration.streaming.waiting import PATIENCE_S
from spark_elastic.jar import jar_path
from spark_elastic.spark_conf import PLUGIN, read_properties
from spark_elastic_lab.demo.cluster import isolated_environment, spark_home
from spark_elastic_lab.demo.processes import LoggedProcess
from tests.unit.tools.init_scripts.laid_out import Machine, no_process_left, write_wheel

pytestmark = [pytest.mark.integration, pytest.mark.matrix, pytest.mark.timeout(300)]

SPARK = metadata.version("pyspark")
# Plain Spark's count; the policy chooses one per slot, or leaves room where the count is permanent.
PLAIN, SLOTS = 9, 2
FIRST = SLOTS if MOVES_STATE else 4 * SLOTS


def lay_out_spark(home: Path, jars: Path) -> None:
    """Make a Spark of links, whose jars are in a folder that others may write into."""
    for part in spark_home().iterdir():
        if part.name != "jars":
            (home / part.name).symlink_to(part)
    jars.mkdir(parents=True, exist_ok=True)
    for jar in (spark_home() / "jars").iterdir():
        (jars / jar.name).symlink_to(jar)
    if not (home / "jars").exists():
        (home / "jars").symlink_to(jars)


def on_databricks(machine: Machine) -> tuple[Path, Mapping[str, str]]:
    """Install as Databricks would; return Spark's home and the settings of the driver."""
    home, jars = machine.root / "databricks" / "spark", machine.root / "databricks" / "jars"
    machine.put("databricks/spark/VERSION", SPARK)
    machine.put("databricks/driver/conf/spark-branch.conf", "[driver] {\n}\n")
    lay_out_spark(home, jars)
    machine.put_real_python(machine.root / "databricks" / "python" / "bin" / "python")
    succeeded(machine, machine.write("databricks"), DB_IS_DRIVER="TRUE")
    # Databricks' own reader of these files is not available; each line is a setting.
    text = (machine.root / "databricks/driver/conf/00-spark-elastic.conf").read_text()
    return home, dict(re.findall(r'^ +"(.+)" = "(.+)"$', text, re.MULTILINE))


def on_emr(machine: Machine) -> tuple[Path, Mapping[str, str]]:
    """Install as EMR would, with the step; return Spark's home and the settings of spark-defaults.conf."""
    home = machine.root / "usr" / "lib" / "spark"
    defaults = machine.put("etc/spark/conf/spark-defaults.conf", "spark.ui.showConsoleProgress false\n")
    machine.put_real_python(machine.bin / "python3.11")
    script = machine.write("emr")
    succeeded(machine, script)
    home.mkdir(parents=True)
    lay_out_spark(home, home / "jars")
    succeeded(machine, script, "configure")
    return home, read_properties(defaults)


def succeeded(machine: Machine, script: Path, *arguments: str, **environment: str) -> None:
    result = machine.run(script, *arguments, **environment)
    assert (result.returncode, result.stderr) == (0, "")
    assert "error" not in result.stdout, result.stdout


def package() -> dict[str, bytes]:
    """Return the files of our package, and the jar for the installed Spark, as a wheel has them."""
    folder = Path(str(resources.files("spark_elastic")))
    files = [file for file in folder.rglob("*") if file.suffix in (".py", ".sh", ".typed")]
    jar = jar_path()
    return {f"spark_elastic/{file.relative_to(folder)}": file.read_bytes() for file in (*files, jar)}


@pytest.mark.parametrize("install", [on_databricks, on_emr])
def test_spark_runs_batch_and_stream_with_what_a_script_installed(
    tmp_path: Path, install: Callable[[Machine], tuple[Path, Mapping[str, str]]]
) -> None:
    machine = Machine(tmp_path / "machine")
    write_wheel(machine.files, jars=(), more=package())
    with no_process_left(machine):
        home, settings = install(machine)
        inbox = Inbox(tmp_path / "in")
        inbox.put(3)
        found = run(home, settings, tmp_path / "application", inbox)
    assert settings["spark.plugins"] == PLUGIN
    assert settings["spark.elastic.python"] == f"{machine.home}/bin/python"
    totals = {str(key): list(value) for key, value in inbox.totals().items()}
    assert found["batch"] == found["stream"] == totals
    assert found["partitions"] == FIRST
    assert Path(str(found["jar"])).parent == (home / "jars").resolve()


def run(home: Path, settings: Mapping[str, str], folder: Path, inbox: Inbox) -> Mapping[str, object]:
    """Submit the application with only these settings of ours; return its output."""
    (folder / "conf").mkdir(parents=True)
    flags = {
        **settings,
        "spark.elastic.startTimeout": "1min",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": str(PLAIN),
    }
    result = folder / "result.json"
    command = [str(home / "bin" / "spark-submit"), "--master", f"local[{SLOTS}]"]
    for key, value in flags.items():
        command += ["--conf", f"{key}={value}"]
    command += [str(APPS / "both_kinds.py"), str(inbox.folder), str(folder / "checkpoint"), str(result)]
    environment = {
        **isolated_environment(folder / "conf", folder / "local"),
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
    }
    process = LoggedProcess("both kinds", command, env=environment, log=folder / "driver.log", cwd=folder)
    try:
        process.wait_until_gone(2 * PATIENCE_S)
        assert process.exit_code == 0, process.log_tail()
    finally:
        process.stop()
    written = json.loads(result.read_text())
    assert isinstance(written, dict)
    return written
