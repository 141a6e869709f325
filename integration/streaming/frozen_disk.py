"""A file system that can be frozen: processes that write to it block, and cannot be killed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from attrs import define

_TOOLS = ("mkfs.ext4", "mount", "umount", "fsfreeze")
_MB = 1 << 20
_COMMAND_S = 30.0


@define
class Disk:
    """A small separate file system, at `folder`."""

    folder: Path
    _thaws: subprocess.Popen[bytes] | None = None

    def freeze(self) -> None:
        """Block every write. Raises CalledProcessError."""
        _run("fsfreeze", "--freeze", self.folder)
        # However this process ends, the pipe is closed then, and no process stays blocked forever.
        self._thaws = subprocess.Popen(
            ["sh", "-c", 'read -r _; exec fsfreeze --unfreeze "$0"', str(self.folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def thaw(self) -> None:
        """Unblock writes; does nothing if it is not frozen. Raises CalledProcessError."""
        if self._thaws is not None:
            thaws, self._thaws = self._thaws, None
            thaws.communicate(timeout=_COMMAND_S)
            if thaws.returncode != 0:
                raise subprocess.CalledProcessError(thaws.returncode, "fsfreeze --unfreeze")


@contextmanager
def disk(folder: Path) -> Iterator[Disk]:
    """Mount one under a new folder during the block. Raises CalledProcessError without the right to mount."""
    image, place = folder / "image", folder / "disk"
    place.mkdir(parents=True)
    with image.open("wb") as file:
        file.truncate(16 * _MB)
    _run("mkfs.ext4", "-q", image)
    with ExitStack() as closing:
        _run("mount", "-o", "loop", image, place)
        # A process may still have a file open there.
        closing.callback(_run, "umount", "--lazy", place)
        made = Disk(place)
        closing.callback(made.thaw)
        yield made


def why_not(folder: Path) -> str | None:
    """Return why no file system can be frozen here, None if one can."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        return f"there is no {missing[0]}"
    if os.getuid() != 0:
        return "only root may mount one"
    try:
        with disk(folder) as made:
            made.freeze()
    except subprocess.CalledProcessError as error:
        return f"none can be mounted or frozen: {(error.stderr or b'').decode(errors='replace').strip()}"
    return None


def _run(*command: str | Path) -> None:
    subprocess.run([str(word) for word in command], capture_output=True, check=True, timeout=_COMMAND_S)
