"""Control groups, of either version: kubelet wants its root to exist in each hierarchy."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_END_S = 20.0
_POLL_S = 0.05


def groups(name: str) -> list[Path]:
    """Return the folders of a control group (`/a/b`): one, or with version 1 one for each hierarchy."""
    return [hierarchy / name.lstrip("/") for hierarchy in _hierarchies()]


def make_groups(name: str) -> None:
    """Create a control group below another one."""
    for group in groups(name):
        group.mkdir(parents=True, exist_ok=True)
        for each in (group.parent, group):
            for setting in ("cpuset.cpus", "cpuset.mems"):
                # In version 1 they are empty at first, and a process cannot enter such a group.
                if (each / setting).exists() and not (each / setting).read_text().strip():
                    (each / setting).write_text((each.parent / setting).read_text())


def remove_groups(name: str) -> None:
    """Remove a control group whose processes have been killed, with those below it."""
    deadline = time.monotonic() + _END_S
    for group in groups(name):
        # Its processes leave it one by one.
        while group.exists():
            for folder in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
                with suppress(OSError):
                    folder.rmdir()
            with suppress(OSError):
                group.rmdir()
            if time.monotonic() > deadline:
                break
            time.sleep(_POLL_S)


def runs_with_groups(name: str) -> set[str]:
    """Return the names of topmost control groups that are this name and a number."""
    found = (path.name for hierarchy in _hierarchies() for path in hierarchy.glob(f"{name}*"))
    return {each for each in found if re.fullmatch(rf"{name}\d+", each)}


def _hierarchies() -> list[Path]:
    if (_ROOT / "cgroup.controllers").exists():
        return [_ROOT]
    return [path for path in _ROOT.iterdir() if path.is_dir() and not path.is_symlink()]
