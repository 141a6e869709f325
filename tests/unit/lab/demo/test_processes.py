"""Tests of how the demonstration ends its processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from spark_elastic_lab.demo.processes import LoggedProcess, ProcessFailure, group_lives

# Starts a child that ignores SIGTERM, prints its number, and sleeps.
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import signal, time;"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"])
print("child", child.pid, flush=True)
time.sleep(60)
"""


def start(folder: Path, code: str) -> LoggedProcess:
    command = [sys.executable, "-c", code]
    return LoggedProcess("p", command, env=dict(os.environ), log=folder / "p.log", cwd=folder)


def test_what_a_process_started_ends_with_it(tmp_path: Path) -> None:
    process = start(tmp_path, PARENT)
    process.wait_for_line(r"child (\d+)", 10)
    process.wait_for_line("deaf", 10)
    assert group_lives(process.pid)
    process.stop(grace_s=5)
    assert process.wait_until_gone(5)
    process.stop()


def test_a_line_is_found_even_if_the_process_has_ended(tmp_path: Path) -> None:
    process = start(tmp_path, "print('port 17')")
    process.wait(10)
    assert process.wait_for_line(r"port (\d+)", 0)[1] == "17"


def test_an_end_before_the_line_is_said_with_the_last_words(tmp_path: Path) -> None:
    process = start(tmp_path, "raise SystemExit('no room')")
    with pytest.raises(ProcessFailure, match=r"(?s)code 1.*no room"):
        process.wait_for_line("port", 10)


def test_a_line_that_does_not_come_is_not_waited_for_without_end(tmp_path: Path) -> None:
    process = start(tmp_path, "import time; time.sleep(60)")
    with pytest.raises(ProcessFailure, match="nothing like 'port'"):
        process.wait_for_line("port", 0.2)
    process.kill()
    assert process.wait_until_gone(5)
