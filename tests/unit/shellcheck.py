"""ShellCheck, which the extra `dev` installs beside this Python."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path


def complaints(script: Path) -> str:
    """Return what ShellCheck has against a script; nothing if all is well."""
    # A Python that is called by its path has its own programs not on PATH.
    beside = str(Path(sys.executable).parent)
    program = shutil.which("shellcheck", path=beside) or shutil.which("shellcheck")
    assert program is not None, "shellcheck is not installed: type `make venv`"
    return subprocess.run([program, str(script)], capture_output=True, text=True, check=False).stdout
