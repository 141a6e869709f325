"""The files of a journal: for the driver's user alone, and no other files than his.

The usual place for event logs is a folder that everybody may write to. So nobody else may read what an
application has been doing, and nothing that somebody else has put there is followed, written to, or taken for
the state of the policy.
"""

from __future__ import annotations

import fcntl
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
_MOUNTS = Path("/proc/self/mounts")
# File systems of one host, where a lock is seen by all who could hold one.
_LOCAL = frozenset({"btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"})


class NotOurs(OSError):
    """There is something at the place of the journal that is not to be touched; the text says what."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.strerror = why


def open_to_append(path: Path) -> IO[bytes]:
    """Open a journal, made where it is not there, with the folders above it. Raises OSError, NotOurs.

    While it is open it is locked: that says that somebody writes it, however long ago the last line was.
    """
    _make_folder(path.parent)
    file = _open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    os.fchmod(file, _FILE)
    with suppress(OSError):  # a file system without locks: nobody removes anything there
        fcntl.flock(file, fcntl.LOCK_SH)
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
    """Remove the journals that nobody writes, last written to before a time (s since the epoch).

    Where other hosts may have a journal whose lock is not seen here, none is removed. Raises OSError.
    """
    if not _is_local(folder):
        return
    for file in folder.glob("spark-elastic-*.jsonl*"):
        with suppress(FileNotFoundError):  # another application has been faster
            if file.lstat().st_mtime < before and not _is_written(file):
                file.unlink()


def _is_written(part: Path) -> bool:
    """Say whether somebody has the journal open that a part belongs to, or nobody can tell."""
    newest = part.with_name(part.name.removesuffix(".1"))
    try:
        with os.fdopen(_open(newest, os.O_RDONLY), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _is_local(folder: Path) -> bool:
    """Say whether a folder is on a file system of this host; where the system does not tell, it counts so."""
    try:
        mounts = [line.split(" ")[1:3] for line in _MOUNTS.read_text(encoding="utf-8").splitlines()]
    except OSError:
        return True
    real = folder.resolve()
    at = [(len(point), kind) for point, kind in mounts if real.is_relative_to(point)]
    # Of several mounts at one place the last one counts.
    _, kind = max(enumerate(at), key=lambda found: (found[1][0], found[0]), default=(0, (0, "")))[1]
    return kind in _LOCAL


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
