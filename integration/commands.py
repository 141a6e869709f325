"""Run programs that others must have: one that fails is an error with what it said."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_SAID = 3000


def output_of(
    command: Sequence[str],
    failure: type[Exception],
    *,
    timeout_s: float | None = None,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> str:
    """Return what a command prints. Raises `failure` with the end of what it said, and TimeoutExpired."""
    done = subprocess.run(
        command,
        input=stdin,
        env=env,
        cwd=folder,
        timeout=timeout_s,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        called = " ".join([Path(command[0]).name, *command[1:]])
        raise failure(f"{called}: {(done.stderr or done.stdout).strip()[-_SAID:]}")
    return done.stdout
