"""Child processes that end together with everything they started."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_POLL_S = 0.05
_TAIL_LINES = 20
_LINE_WIDTH = 200
_FRAME = re.compile(r"\s+at \S|\s*$")
_PROC = Path("/proc")


class ProcessFailure(Exception):
    """A process that we started did not do what was expected; the text ends with its last log lines."""


class LoggedProcess:
    """One child process in its own session, with its output in a log file.

    The session puts the child and everything it starts (a worker's executors, a driver's policy process) into
    one process group, so that a signal reaches exactly those.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        log: Path,
        cwd: Path,
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        self.name = name
        self.log = log
        with log.open("wb") as output:
            self._child = subprocess.Popen(
                list(command),
                env=dict(env),
                cwd=cwd,
                stdin=stdin,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self._child.pid
        self.stdin = self._child.stdin
        self._killed = False

    @property
    def exit_code(self) -> int | None:
        """Return the exit code (negative for a signal), or None while the process runs."""
        return self._child.poll()

    @property
    def running(self) -> bool:
        """Return whether the process itself, not only a child of it, is alive."""
        return self.exit_code is None

    def wait_for_line(self, pattern: str, timeout_s: float) -> re.Match[str]:
        """Return the first match in the log. Raises ProcessFailure at exit or after `timeout_s`."""
        compiled = re.compile(pattern)
        deadline = time.monotonic() + timeout_s
        while True:
            ended = not self.running
            found = compiled.search(self.log.read_text(errors="replace"))
            if found:
                return found
            if ended:
                raise ProcessFailure(f"{self.name} ended with code {self.exit_code}\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise ProcessFailure(
                    f"{self.name}: nothing like '{pattern}' in {timeout_s:g} s\n{self.log_tail()}"
                )
            time.sleep(_POLL_S)

    def log_tail(self, lines: int = _TAIL_LINES) -> str:
        """Return the last `lines` lines of the log, shortened, without stack frames."""
        said = [line for line in self.log.read_text(errors="replace").splitlines() if not _FRAME.match(line)]
        return "\n".join(line[:_LINE_WIDTH] for line in said[-lines:])

    def send(self, number: signal.Signals) -> None:
        """Send a signal to this process only; do nothing if it has ended."""
        if self.running:
            self._child.send_signal(number)

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit code, or None if the process still runs after `timeout_s`."""
        try:
            return self._child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """Kill the process and everything it started with SIGKILL, as if the machine had died."""
        if self._killed:
            # The id of a group that has ended may have been reused.
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._child.wait()
        self._killed = True

    def stop(self, grace_s: float = 5.0) -> None:
        """Stop the process and everything it started: SIGTERM first, SIGKILL after `grace_s`."""
        self.send(signal.SIGTERM)
        self.wait(grace_s)
        self.kill()

    def wait_until_gone(self, timeout_s: float) -> bool:
        """Return whether the process and everything it started have ended within `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while self.running or group_lives(self.pid):
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True


def group_lives(group: int) -> bool:
    """Return whether a process group has a member that has not ended."""
    if not _PROC.exists():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, 0)
            return True
        return False
    # A zombie, which has ended but was not waited for, still answers to signals.
    return any(state not in "ZX" for state in map(_state_in(group), _PROC.glob("[0-9]*/stat")) if state)


def _state_in(group: int) -> Callable[[Path], str | None]:
    def state(stat: Path) -> str | None:
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return fields[0] if int(fields[2]) == group else None

    return state
