"""One suite of Spark's in its own JVM, with or without the plugin."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree

from integration.spark_suites.suite_jars import REPOSITORY, pyspark_jars, suite_jars, suites_version
from spark_elastic.jar import jar_path
from spark_elastic_tools.java import find_java

# A hung suite must not hold up everything; the slowest takes about 4 minutes on two cores.
_TIME_LIMIT_S = 1800

# The JVM options that Spark's own build uses for its tests.
_OPEN = (
    "java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util"
    " java.util.concurrent java.util.concurrent.atomic jdk.internal.ref"
    " sun.nio.ch sun.nio.cs sun.security.action sun.util.calendar"
)
_JVM = (
    "-Xmx3g",
    "-Xss4m",
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--add-modules=jdk.incubator.vector",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPEN.split()),
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dspark.testing=1",
)

# Tests have their own timeouts (20 s). On a busy machine, a cold JVM exceeds them in the first test, with and
# without the plugin, so a test that is not counted runs first.
_WARM_UP = (
    "org.apache.spark.sql.streaming.StreamingAggregationSuite",
    "simple count, update mode - state format version 2",
)

_PLUGIN_SETTINGS = {
    "spark.plugins": "org.apache.spark.elastic.ElasticPlugin",
    "spark.elastic.schedulerMode": "reactive",
    "spark.elastic.python": sys.executable,
}
# Tests set their own partition count and state store, and assert them.
_UNCHANGED = {"spark.elastic.explicitParallelism": "fixed", "spark.elastic.stateStore": "unchanged"}


_OF_A_QUERY = re.compile(r'"decision":\{"number":\d+,"query":"')


class NotAnsweredError(Exception):
    """A suite ran without the policy, so its results prove nothing."""


#: By the name of the test: why it failed, None if it passed.
Outcomes = dict[str, str | None]


def run_suite(suite: str, *, plugin: bool, settings: dict[str, str]) -> Outcomes:
    """Run one suite and return the outcome of each of its tests.

    `settings` (spark.* keys) override the plugin's. Tests that the suite itself ignores are left out. An
    empty result means that the suite was aborted, hung or crashed; the reason is in its log
    (target/spark-suites/SPARK/NAME-*/suite.log). Raises JarFailure if the jars cannot be fetched, and
    NotAnsweredError if the policy decided nothing in the whole suite: a plugin that was not loaded breaks
    nothing.
    """
    folder = results_folder() / f"{suite.rsplit('.', 1)[-1]}-{'plugin' if plugin else 'plain'}"
    outcomes = _run_together([suite], folder, plugin=plugin, settings={**_UNCHANGED, **settings})[suite]
    if plugin and not has_answered(folder / "journals", warmed_up=suite != _WARM_UP[0]):
        raise NotAnsweredError(f"the policy has decided nothing in {suite}: see {folder / 'suite.log'}")
    return outcomes


def run_suites(
    suites: Sequence[str], *, plugin: bool, settings: dict[str, str], name: str
) -> dict[str, Outcomes]:
    """Run suites one after another in one JVM and return the outcomes of each suite's tests.

    The JVM works in the folder `name` of the results. A suite without outcomes was aborted or not reached.
    Raises JarFailure if the jars cannot be fetched.
    """
    folder = results_folder() / name
    return _run_together(suites, folder, plugin=plugin, settings=settings)


def results_folder() -> Path:
    """Return the folder of the results for the installed Spark."""
    return REPOSITORY / "target" / "spark-suites" / "_".join(suites_version())


def _run_together(
    suites: Sequence[str], folder: Path, *, plugin: bool, settings: dict[str, str]
) -> dict[str, Outcomes]:
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "home").mkdir(parents=True)
    if plugin:
        settings = {**_PLUGIN_SETTINGS, "spark.elastic.journal.dir": str(folder / "journals"), **settings}
    _execute(_command(suites, folder, settings, plugin), folder)
    return {suite: _outcomes(folder / "reports" / f"TEST-{suite}.xml") for suite in suites}


def _command(suites: Sequence[str], folder: Path, settings: dict[str, str], plugin: bool) -> list[str]:
    jars = suite_jars()
    # pyspark's jars come first: the companions bring older copies of Scala's libraries.
    class_path = [f"{pyspark_jars()}/*", *map(str, jars), *([str(jar_path())] if plugin else [])]
    return [
        find_java(),
        *_JVM,
        f"-Dspark.test.home={folder / 'home'}",
        f"-Djava.io.tmpdir={folder}",
        *(f"-D{key}={value}" for key, value in settings.items()),
        *("-cp", os.pathsep.join(class_path)),
        *("org.scalatest.tools.Runner", "-R", str(jars[0])),
        *(() if suites[0] == _WARM_UP[0] else ("-s", _WARM_UP[0], "-t", _WARM_UP[1])),
        *(part for suite in suites for part in ("-s", suite)),
        *("-oW", "-u", str(folder / "reports")),
    ]


def _execute(command: list[str], folder: Path) -> None:
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    with (folder / "suite.log").open("wb") as log:
        child = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            child.wait(_TIME_LIMIT_S)
        except subprocess.TimeoutExpired:
            log.write(f"\nstopped: it took longer than {_TIME_LIMIT_S} s\n".encode())
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def has_answered(journals: Path, *, warmed_up: bool) -> bool:
    """Return whether the policy decided about a query or a batch stage in one of a suite's applications.

    The first journal belongs to the suite that warms up the JVM; it proves nothing about the one after it.
    """
    starts = sorted(journals.glob("*.jsonl"))[int(warmed_up) :]
    return any(_has_decided(part) for first in starts for part in journals.glob(f"{first.name}*"))


def _has_decided(part: Path) -> bool:
    with part.open(encoding="utf-8") as lines:
        return any(line.startswith('{"stage":') or _OF_A_QUERY.search(line) for line in lines)


def _outcomes(report: Path) -> Outcomes:
    if not report.is_file():
        return {}
    cases = ElementTree.parse(report).getroot().iter("testcase")
    return {case.attrib["name"]: _why_failed(case) for case in cases if case.find("skipped") is None}


def _why_failed(case: ElementTree.Element) -> str | None:
    for kind in ("failure", "error"):
        found = case.find(kind)
        if found is not None:
            return found.attrib.get("message", "").strip() or kind
    return None
