"""Runs ShellCheck, which the extra `dev` installs next to this Python."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path


def complaints(script: Path) -> str:
    """Return ShellCheck's complaints about a script, empty if there are none."""
    # A Python that is called by its path may not have its own programs on PATH.
    beside = str(Path(sys.executable).parent)
    program = shutil.which("shellcheck", path=beside) or shutil.which("shellcheck")
    assert program is not None, "shellcheck is not installed: type `make venv`"
    return subprocess.run([program, str(script)], capture_output=True, text=True, check=False).stdout
