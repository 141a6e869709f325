"""A file system that can be frozen: who writes to it then waits for it, and cannot be killed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

_TOOLS = ("mkfs.ext4", "mount", "umount", "fsfreeze")
_MB = 1 << 20


@frozen
class Disk:
    """A small file system of its own, at `folder`."""

    folder: Path

    def freeze(self) -> None:
        """Let whoever writes wait. Raises CalledProcessError."""
        _run("fsfreeze", "--freeze", self.folder)

    def thaw(self) -> None:
        """Let them go on; nothing happens if it was not frozen."""
        subprocess.run(["fsfreeze", "--unfreeze", str(self.folder)], capture_output=True, check=False)


@contextmanager
def disk(folder: Path) -> Iterator[Disk]:
    """Mount one under a new folder; it is gone with the block. Raises CalledProcessError where none may."""
    image, place = folder / "image", folder / "disk"
    place.mkdir(parents=True)
    with image.open("wb") as file:
        file.truncate(16 * _MB)
    _run("mkfs.ext4", "-q", image)
    _run("mount", "-o", "loop", image, place)
    made = Disk(place)
    try:
        yield made
    finally:
        made.thaw()
        # One that was waiting may still have a file open.
        _run("umount", "--lazy", place)


def why_not(folder: Path) -> str | None:
    """Say why this machine has none, None if it has."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        return f"there is no {missing[0]}"
    if os.getuid() != 0:
        return "only root may mount one"
    try:
        with disk(folder) as made:
            made.freeze()
    except subprocess.CalledProcessError as error:
        return f"none can be mounted or frozen: {error.stderr.decode(errors='replace').strip()}"
    return None


def _run(*command: str | Path) -> None:
    subprocess.run([str(word) for word in command], capture_output=True, check=True)
