"""Tests of the policy process as the plugin starts it: its exit codes, its end, its output."""

from __future__ import annotations

import json
import os
import signal
import site
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from spark_elastic.wire import encode_event
from tests.unit.jar.packed import jar
from tests.unit.runtime.driver import TOKEN, Driver
from tests.unit.runtime.support import snapshot

pytestmark = pytest.mark.long

CHECKOUT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-m", "spark_elastic.runtime"]


@contextmanager
def started(line: bytes) -> Iterator[subprocess.Popen[bytes]]:
    pipe = subprocess.PIPE
    with subprocess.Popen(COMMAND, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            stdin(process).write(line)
            stdin(process).flush()
            yield process
        finally:
            process.kill()


def stdin(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdin is not None
    return process.stdin


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Wait for the end while standard input stays open; return exit code and output."""
    code = process.wait(30)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.read() == b""
    return code, process.stderr.read().decode()


def first(**conf: str) -> dict[str, Any]:
    return {
        "events": [encode_event(snapshot({f"spark.elastic.{key}": value for key, value in conf.items()}))]
    }


def until(driver: Driver, requests: int) -> None:
    deadline = time.monotonic() + 20
    while len(driver.requests) < requests:
        assert time.monotonic() < deadline, driver.requests
        time.sleep(0.01)


def test_it_ends_with_0_when_the_driver_says_stop_and_has_said_nothing() -> None:
    with Driver(first(**{"journal.dir": "none"})) as driver, started(driver.line) as process:
        assert ended(process) == (0, "")
    assert [method for method, _ in driver.requests] == ["hello", "exchange", "exchange"]
    configure, *_ = driver.requests[2][1]["actions"]
    assert (configure["type"], configure["cause"]) == ("Configure", "s1")


def test_the_journal_is_complete_when_it_ends(tmp_path: Path) -> None:
    answer = first()
    answer["events"][0]["conf"]["spark.elastic.journal.dir"] = str(tmp_path)
    with Driver(answer) as driver, started(driver.line) as process:
        assert ended(process)[0] == 0
    (journal,) = tmp_path.iterdir()
    kinds = [next(iter(json.loads(line))) for line in journal.read_text().splitlines()]
    assert kinds[:3] == ["journal", "event", "actions"]


@pytest.mark.parametrize("line", [b"hello\n", b'{"port": 1}\n'])
def test_it_ends_with_2_when_the_drivers_line_makes_no_sense(line: bytes) -> None:
    with started(line) as process:
        code, said = ended(process)
    assert code == 2
    assert said.count("\n") == 1


def test_it_ends_with_2_when_a_person_starts_it() -> None:
    run = subprocess.run(COMMAND, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    assert run.returncode == 2
    assert "started by the plugin" in run.stderr


def test_it_ends_with_3_when_the_other_end_is_not_its_driver() -> None:
    with Driver(key="another secret") as driver, started(driver.line) as process:
        code, said = ended(process)
    assert code == 3
    assert said.count("\n") == 1
    assert TOKEN not in said


def test_it_ends_with_4_when_nobody_listens() -> None:
    driver = Driver()
    line = driver.line
    with driver:
        pass
    with started(line) as process:
        code, said = ended(process)
    assert code == 4
    assert said.startswith("ERROR no connection to the driver at 127.0.0.1:")
    assert said.count("\n") == 1


def test_it_ends_with_4_when_the_connection_breaks() -> None:
    silent = first(**{"journal.dir": "none"})
    with Driver(silent, None) as driver, started(driver.line) as process:
        code, said = ended(process)
    assert code == 4
    assert said.count("\n") == 1
    assert TOKEN not in said


def test_it_ends_at_once_when_standard_input_ends_whatever_it_is_doing() -> None:
    with Driver(first(), *({"events": []},) * 100_000) as driver, started(driver.line) as process:
        until(driver, 3)
        since = time.monotonic()
        stdin(process).close()
        assert process.wait(10) == 0
        assert time.monotonic() - since < 2


def test_ctrl_c_in_the_drivers_terminal_does_not_end_it() -> None:
    with Driver(first(), *({"events": []},) * 100_000) as driver, started(driver.line) as process:
        until(driver, 3)
        os.kill(process.pid, signal.SIGINT)
        os.kill(process.pid, signal.SIGHUP)
        until(driver, len(driver.requests) + 20)
        assert process.poll() is None
        process.terminate()
        assert process.wait(10) == -signal.SIGTERM


def test_settings_that_cannot_be_used_reach_the_driver_in_one_line() -> None:
    with Driver(first(nonsense="1")) as driver, started(driver.line) as process:
        assert ended(process) == (0, "")
    (off,) = driver.requests[2][1]["actions"]
    assert off["type"] == "TurnOff"
    assert "spark.elastic.nonsense" in off["message"]


def started_by_the_shim(cwd: Path) -> subprocess.CompletedProcess[str]:
    """Start it as the plugin does, which removes empty parts from the path."""
    path = os.pathsep.join([str(CHECKOUT / "python"), *site.getsitepackages()])
    return subprocess.run(
        [sys.executable, jar(cwd, {}), "spark_elastic.runtime"], cwd=cwd, stdin=subprocess.DEVNULL,
        env={"PYTHONPATH": path}, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "module", ["json", "attr", "attrs", "py4j", "spark_elastic", "runpy", "os", "logging"]
)
def test_no_module_in_the_drivers_working_directory_is_taken_for_one_of_ours(
    tmp_path: Path, module: str
) -> None:
    planted = tmp_path / "taken"
    text = f"open({str(planted)!r}, 'w').close()\nraise SystemExit(77)\n"
    (tmp_path / f"{module}.py").write_text(text)
    (tmp_path / "sitecustomize.py").write_text(text)
    run = started_by_the_shim(tmp_path)
    assert not planted.exists()
    assert (run.returncode, "started by the plugin" in run.stderr) == (2, True), run.stderr


def test_what_ends_a_thread_is_said_without_credentials() -> None:
    code = (
        "import threading; from spark_elastic.runtime.__main__ import _log_to_stderr; _log_to_stderr(); "
        "thread = threading.Thread(target=open, args=['s3a://me:planted@bucket/x'], name='reads'); "
        "thread.start(); thread.join()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert "ERROR reads has ended with an error" in run.stderr
    assert "s3a://***@bucket/x" in run.stderr
    assert "planted" not in run.stderr


def test_it_imports_nothing_that_only_the_command_line_needs() -> None:
    code = (
        "import sys, spark_elastic.runtime.__main__; "
        "print(sorted({'click', 'rich', 'pyspark', 'yaml', 'asyncio'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert run.stdout.strip() == "[]"
