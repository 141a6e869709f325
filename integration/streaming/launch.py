"""Starts an application as a user does: by spark-submit, whose process is the driver's JVM, or by Python."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from integration.class_archive import of_drivers
from integration.streaming.driver import PLUGIN
from spark_elastic.jar import jar_path
from spark_elastic_lab.demo.cluster import SMALL_JVM, isolated_environment, spark_home
from spark_elastic_lab.demo.processes import LoggedProcess

APPS = Path(__file__).parent / "apps"
CHECKOUT = Path(__file__).parents[2]
WITH_PLUGIN = {**PLUGIN, "spark.elastic.python": sys.executable}
_SCHEDULER = "spark.elastic.adaptiveScheduler"
# Every change is followed at once: a test need not wait until its cluster is quiet.
AT_ONCE = {
    f"{_SCHEDULER}.submission.resourceStabilizationTimeout": "0",
    f"{_SCHEDULER}.executing.cooldownAfterRescaling": "0",
    f"{_SCHEDULER}.executing.resourceStabilizationTimeout": "0",
}


def python_that_finds(folder: Path) -> str:
    """Return a Python for the policy process that finds the modules in a folder."""
    program = folder / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}" exec "{sys.executable}" "$@"\n')
    program.chmod(0o755)
    return str(program)


@contextmanager
def submitted(
    application: str,
    arguments: Sequence[str],
    folder: Path,
    conf: Mapping[str, str],
    master: str = "local[2]",
    env: Mapping[str, str] | None = None,
) -> Iterator[LoggedProcess]:
    """Run an application of `apps`, or one by its full path; its processes end with the block."""
    with launched(application, [str(APPS / application), *arguments], folder, conf, master, env) as process:
        yield process


@contextmanager
def launched(
    name: str,
    program: Sequence[str],
    folder: Path,
    conf: Mapping[str, str],
    master: str = "local[2]",
    env: Mapping[str, str] | None = None,
) -> Iterator[LoggedProcess]:
    """Run spark-submit with these arguments; it ends with the block, with its child processes."""
    command = [str(spark_home() / "bin" / "spark-submit"), *_flags(conf, master), *program]
    with _running(name, command, folder, env or {}) as process:
        yield process


@contextmanager
def run_by_python(
    application: str, arguments: Sequence[str], folder: Path, conf: Mapping[str, str]
) -> Iterator[LoggedProcess]:
    """Run an application of `apps` with `python`, which starts the driver's JVM; it ends with the block."""
    command = [sys.executable, str(APPS / application), *arguments]
    env = {"PYSPARK_SUBMIT_ARGS": shlex.join([*_flags(conf, "local[2]"), "pyspark-shell"])}
    with _running(application, command, folder, env) as process:
        yield process


def _flags(conf: Mapping[str, str], master: str) -> list[str]:
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraClassPath": str(jar_path()),
        "spark.driver.extraJavaOptions": f"{SMALL_JVM} {of_drivers()}".strip(),
        **conf,
    }
    flags = ["--master", master]
    for key, value in settings.items():
        flags += ["--conf", f"{key}={value}"]
    return flags


@contextmanager
def _running(
    name: str, command: Sequence[str], folder: Path, env: Mapping[str, str]
) -> Iterator[LoggedProcess]:
    folder.mkdir(parents=True, exist_ok=True)
    environment = {
        **isolated_environment(folder / "conf", folder / "local"),
        "PYTHONPATH": str(CHECKOUT),  # for the code that applications share with tests
        **env,
    }
    process = LoggedProcess(name, command, env=environment, log=folder / "driver.log", cwd=folder)
    try:
        yield process
    finally:
        process.stop()
