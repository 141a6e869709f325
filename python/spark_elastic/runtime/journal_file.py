"""The files of a journal: for the driver's user alone, and no other files than his.

The usual place for event logs is a folder that everybody may write to. So nobody else may read what an
application has been doing, and nothing that somebody else has put there is followed, written to, or taken for
the state of the policy.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO

__all__ = ["NotOurs", "make_own_folder", "open_to_append", "read", "remove_old"]

# A symbolic link is no journal, and opening a pipe must not wait for its other end.
_CAREFULLY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FILE = 0o600
_FOLDER = 0o700


class NotOurs(OSError):
    """There is something at the place of the journal that is not to be touched; the text says what."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.strerror = why


def open_to_append(path: Path) -> IO[bytes]:
    """Open a journal, made where it is not there, with the folders above it. Raises OSError, NotOurs."""
    _make_folder(path.parent)
    file = _open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    os.fchmod(file, _FILE)
    return os.fdopen(file, "ab")


def read(path: Path) -> bytes:
    """Return all of a journal. Raises OSError, NotOurs."""
    with os.fdopen(_open(path, os.O_RDONLY), "rb") as file:
        return file.read()


def make_own_folder(folder: Path) -> None:
    """Make a folder among those that everybody can make, for us alone. Raises OSError, NotOurs."""
    _make_folder(folder)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotOurs("it is a symbolic link: remove it")
    if found.st_uid != os.geteuid():
        raise NotOurs(f"it belongs to another user ({found.st_uid}): set spark.elastic.journal.dir")
    folder.chmod(_FOLDER)


def remove_old(folder: Path, before: float) -> None:
    """Remove the journals that were last written to before a time (s since the epoch). Raises OSError."""
    for file in folder.glob("spark-elastic-*.jsonl*"):
        with suppress(FileNotFoundError):  # another application has been faster
            if file.lstat().st_mtime < before:
                file.unlink()


def _open(path: Path, flags: int) -> int:
    if path.is_symlink():  # said better here than by the error of the opening, which is what it relies on
        raise NotOurs("it is a symbolic link: remove it")
    file = os.open(path, flags | _CAREFULLY, _FILE)
    found = os.fstat(file)
    why = None
    if not stat.S_ISREG(found.st_mode):
        why = "it is no plain file: remove it"
    elif found.st_uid != os.geteuid():
        why = f"it belongs to another user ({found.st_uid}): remove it, or set spark.elastic.journal.dir"
    if why is not None:
        os.close(file)
        raise NotOurs(why)
    return file


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it, for us alone; those that are there stay as they are."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(_FOLDER, exist_ok=True)
