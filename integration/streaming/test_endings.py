"""Tests that an application ends with the plugin as without it: with the same exit code, and as fast."""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import pytest
from attrs import frozen

from integration.jdk_tools import JAR, compile_java, run_tool
from integration.spark_minor import SPARK_MINOR
from integration.streaming.driver import Driver
from integration.streaming.launch import WITH_PLUGIN, launched, run_by_python, submitted
from integration.streaming.waiting import PATIENCE_S, eventually
from spark_elastic_lab.demo.processes import LoggedProcess

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

Launch = Callable[[Path, Mapping[str, str]], AbstractContextManager[LoggedProcess]]
Act = Callable[[LoggedProcess], None]

# The additional time that the plugin may take compared with plain Spark: busy machines are slow.
MORE_S = 30.0
slow = partial(pytest.param, marks=pytest.mark.slow)
_JAVA = """\
import org.apache.spark.sql.SparkSession;

/** Leaves a query running, and returns from main or throws. */
public class Endings {
  public static void main(String[] arguments) throws Exception {
    SparkSession spark = SparkSession.builder().appName("endings").getOrCreate();
    spark.readStream().format("rate").load().writeStream().format("noop").start();
    System.out.println("about to end");
    if (arguments[0].equals("exception")) throw new IllegalStateException("meant to fail");
  }
}
"""


@frozen
class Ended:
    """How an application ended, and the time it took with all of its child processes, in s."""

    code: int | None
    took_s: float


def script(way: str) -> Launch:
    return partial(submitted, "endings.py", [way])


def python(way: str) -> Launch:
    return partial(run_by_python, "endings.py", [way])


def shell(folder: Path, conf: Mapping[str, str]) -> AbstractContextManager[LoggedProcess]:
    """Run spark-shell, whose input is at its end."""
    program = ["--class", "org.apache.spark.repl.Main", "--name", "endings", "spark-shell"]
    env = {"SPARK_SUBMIT_OPTS": "-Dscala.usejavacp=true"}
    return launched("spark-shell", program, folder, conf, env=env)


def by_itself(process: LoggedProcess) -> None:
    """Let it end on its own."""


def interrupted(process: LoggedProcess) -> None:
    """Send the signal of Ctrl-C: a terminal sends it to all processes of the group."""
    os.killpg(process.pid, signal.SIGINT)


def terminated(process: LoggedProcess) -> None:
    process.send(signal.SIGTERM)


def all_terminated(process: LoggedProcess) -> None:
    """Send a service manager's signal, which goes to all processes of a service."""
    os.killpg(process.pid, signal.SIGTERM)


@pytest.fixture(autouse=True)
def ctrl_c_reaches_children() -> Iterator[None]:
    """Undo a shell's setup of background processes: an ignored SIGINT is inherited."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile a Java application into a jar."""
    folder = tmp_path_factory.mktemp("java")
    source, classes, jar = folder / "Endings.java", folder / "classes", folder / "endings.jar"
    source.write_text(_JAVA)
    compile_java(source, classes)
    run_tool(JAR, "--create", "--file", jar, "-C", classes, ".")
    return jar


def end(launch: Launch, act: Act, folder: Path, conf: Mapping[str, str]) -> Ended:
    with launch(folder, conf) as process:
        process.wait_for_line("about to end|Spark session available", PATIENCE_S)
        began = time.monotonic()
        act(process)
        gone = process.wait_until_gone(PATIENCE_S)
        assert gone, (
            f"it still runs after {PATIENCE_S:g} s, exit code {process.exit_code}:\n{process.log_tail()}"
        )
        return Ended(process.exit_code, time.monotonic() - began)


def end_alike(launch: Launch, act: Act, code: int, folder: Path, journals: int = 1) -> None:
    """Run an application with the plugin and without it, concurrently, and compare how they end."""
    journal = folder / "journal"
    ways = {"plain": {}, "plugin": {**WITH_PLUGIN, "spark.elastic.journal.dir": str(journal)}}
    with ThreadPoolExecutor(len(ways)) as both:
        running = {name: both.submit(end, launch, act, folder / name, conf) for name, conf in ways.items()}
    plain, plugin = (running[name].result() for name in ways)
    print(f"plain {plain.took_s:.2f} s, with the plugin {plugin.took_s:.2f} s")
    assert plain.code == code
    assert plugin.code == code
    assert plugin.took_s <= plain.took_s + MORE_S
    # The plugin was active.
    assert len(list(journal.glob("*.jsonl"))) >= journals


@pytest.mark.parametrize(
    ("way", "code"),
    [
        ("query_left", 0),
        slow("exit", 3),
        slow("return", 0),
        slow("exception", 1),
        slow("two_stops", 0),
    ],
)
def test_a_submitted_script_ends_by_itself(tmp_path: Path, way: str, code: int) -> None:
    end_alike(script(way), by_itself, code, tmp_path)


def test_a_script_ends_that_has_stopped_one_context_and_left_another(tmp_path: Path) -> None:
    end_alike(script("second_context"), by_itself, 0, tmp_path, journals=2)


@pytest.mark.slow
def test_a_script_ends_before_its_policy_process_has_begun(tmp_path: Path) -> None:
    end_alike(script("at_once"), by_itself, 0, tmp_path, journals=0)


@pytest.mark.parametrize(
    ("act", "code"), [(interrupted, 130), slow(terminated, 143), slow(all_terminated, 143)]
)
def test_a_submitted_script_is_ended_while_it_awaits_its_query(tmp_path: Path, act: Act, code: int) -> None:
    end_alike(script("awaited"), act, code, tmp_path)


@pytest.mark.parametrize(
    ("way", "act", "code"),
    [
        # Before 4.2, PySpark's own handler comes first, and its call to a JVM that is ending as well fails.
        ("awaited", interrupted, -signal.SIGINT if SPARK_MINOR >= (4, 2) else 1),
        slow("query_left", by_itself, 0),
        slow("exit", by_itself, 3),
        slow("exception", by_itself, 1),
        slow("awaited", terminated, -signal.SIGTERM),
    ],
)
def test_a_script_ends_that_python_runs(tmp_path: Path, way: str, act: Act, code: int) -> None:
    end_alike(python(way), act, code, tmp_path)


@pytest.mark.parametrize(("way", "code"), [("return", 0), slow("exception", 1)])
def test_a_java_application_ends_when_its_main_does(tmp_path: Path, jar: Path, way: str, code: int) -> None:
    program = ["--class", "Endings", str(jar), way]
    end_alike(partial(launched, "Endings", program), by_itself, code, tmp_path)


@pytest.mark.slow
def test_a_shell_ends_with_its_input(tmp_path: Path) -> None:
    end_alike(shell, by_itself, 0, tmp_path)


def test_every_thread_of_ours_is_a_daemon(jvm: Driver) -> None:
    """Other threads would keep the JVM from ending after the application's own threads have ended."""

    def without_daemons() -> Counter[str]:
        threads = jvm.jvm.java.lang.Thread.getAllStackTraces().keySet()
        return Counter(re.sub(r"\d+", "N", t.getName()) for t in threads if not t.isDaemon())

    @contextmanager
    def application(conf: Mapping[str, str]) -> Iterator[None]:
        with jvm.session({**conf, "spark.ui.enabled": "true"}) as spark:
            rows = spark.readStream.format("rate").load()
            query = rows.groupBy().count().writeStream.format("noop").outputMode("update").start()
            query.processAllAvailable()
            spark.range(1000).repartition(3).groupBy("id").count().collect()
            yield

    with application({}):
        plain = without_daemons()
    with application(WITH_PLUGIN):
        threads = jvm.jvm.java.lang.Thread.getAllStackTraces().keySet()
        assert "elastic-policy" in {thread.getName() for thread in threads}
        # Netty has one that appears randomly, in plain Spark too, and ends after a quiet second.
        eventually(lambda: without_daemons() <= plain, "no thread but Spark's that is no daemon")
