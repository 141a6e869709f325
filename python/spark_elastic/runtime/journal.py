"""The decision journal: every event with the actions that it caused, so that a run can be replayed.

The room is bounded. A journal that has filled half of it becomes ``NAME.1``, replacing the one that was
there, and a new part begins, with the state of the scheduler: each part can be replayed by itself. The state
is also written down now and then, so that a policy process that is started again has little to read before
it continues (`resume.py`), with a run of its own, which begins with that state. A journal that cannot be
written any more is set aside as ``NAME.ended``: nobody is to continue from what it knew last. Whose files
these may be, and who may read them, says `journal_file.py`.
"""

from __future__ import annotations

import fcntl
import getpass
import json
import logging
import os
import re
import stat
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

import attrs
from attrs import frozen

from spark_elastic.core.events import Snapshot
from spark_elastic.core.keys import application
from spark_elastic.core.keys.key import is_on
from spark_elastic.runtime.clock import ClockReading
from spark_elastic.runtime.entries import FORMAT, StateEntry
from spark_elastic.runtime.port import JsonObject
from spark_elastic.settings import Settings
from spark_elastic.version import __version__

# The files of a journal: for the driver's user alone, and no other files than his.
# The usual place for event logs is a folder that everybody may write to. So nobody else may read what an
# application has been doing, and nothing that somebody else has put there is followed, written to, or taken
# for the state of the policy.


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


# Where the journal of an application is.
# Where somebody has said so; else beside local event logs, as they are kept for the same reason; else among
# the temporary files, from where old ones are removed. Nobody has asked for these two: what cannot be written
# there is no error, and they are in a folder of our own, for the driver's user alone. There is one for each
# user, since event logs of several users often share a folder.


# Spark's own default for spark.eventLog.dir.
_SPARK_EVENT_LOGS = "/tmp/spark-events"


@frozen(kw_only=True)
class JournalPlace:
    """The file of a journal: `own` says that its folder is ours, `kept` that nothing leaves it."""

    path: Path
    own: bool
    kept: bool = True


def journal_place(settings: Settings, snapshot: Snapshot) -> JournalPlace | None:
    """Return where the journal of an application is, None if it has none."""
    wanted = settings[application.JOURNAL_DIR]
    name = journal_name(snapshot.application)
    if wanted is None:
        return None
    if wanted != application.JOURNAL_DIR.default:
        folder = _local(wanted)
        return None if folder is None else JournalPlace(path=folder / name, own=False)
    if is_on(snapshot.conf, "spark.eventLog.enabled"):
        logs = _local(snapshot.conf.get("spark.eventLog.dir", _SPARK_EVENT_LOGS))
        if logs is not None:
            # Not beside them: Spark's history server takes each file there for one of them.
            return JournalPlace(path=logs / _own_folder() / name, own=True)
    temporary = _temporary_folder(snapshot)
    if temporary is None:
        return None
    return JournalPlace(path=temporary / _own_folder() / name, own=True, kept=False)


def journal_name(application: str) -> str:
    """Return the file name of the journal of an application (its id)."""
    return f"spark-elastic-{_file_name(application)}.jsonl"


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", text)


def _own_folder() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may run as a user without a name
        user = str(os.geteuid())
    return f"spark-elastic-{_file_name(user)}"


def _temporary_folder(snapshot: Snapshot) -> Path | None:
    """Return where Spark keeps its own temporary files, as far as they are on this machine's disks."""
    folders = os.environ.get("SPARK_LOCAL_DIRS") or snapshot.conf.get("spark.local.dir", "")
    first = _local(folders.split(",")[0].strip())
    if first is not None and first.is_absolute():
        return first
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:  # none of the usual folders can be written to
        return None


def _local(place: str) -> Path | None:
    """Return the path of a plain path or a file: URI, None for any other file system."""
    uri = urlsplit(place)
    if not uri.scheme:
        return Path(place)
    return Path(unquote(uri.path)) if uri.scheme == "file" and uri.netloc in ("", "localhost") else None


_log = logging.getLogger(__name__)

# So much is read again in about 0.2 s of a core.
_STATE_EVERY = 1 << 20
# A large state is written less often, and one that would take more than this share of a part never is.
_EVENTS_PER_STATE = 8
_LARGEST_SHARE = 4
# Among temporary files a journal stays so long after its last line.
_KEPT_S = 7 * 24 * 3_600


class Journal:
    """Where a run is written down; without a `path` it is not. `reading` reads the clock that it goes by.

    Disk errors never reach the policy: they are said once, the journal ends there, and is set aside. It has
    `failed` then if it is `required`: if somebody has said that there is to be one.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        application: str = "",
        settings: Settings | None = None,
        max_size: int = 0,
        required: bool = True,
        reading: Callable[[], ClockReading] | None = None,
    ) -> None:
        self._path = path
        self._application = application
        self._conf = settings.as_conf() if settings is not None else {}
        self._half = max_size // 2
        self._required = required
        self._reading = reading
        self._part = 0
        self._written = 0
        self._state_due = 0
        self._states_fit = True
        self._file: IO[bytes] | None = None
        self.failed = False
        if path is not None:
            try:
                self._open(path)
            except OSError as error:
                self._give_up(error)

    @property
    def path(self) -> Path | None:
        """Return the file that is written, None if none is (any more)."""
        return self._path if self._file is not None else None

    def event(self, event: JsonObject) -> None:
        """Write down an event, before it is handled."""
        self._write({"event": event})

    def actions(self, actions: Sequence[JsonObject]) -> None:
        """Write down what the last event caused."""
        if actions:
            self._write({"actions": list(actions)})

    def stage(self, decided: JsonObject) -> None:
        """Write down a question about a batch stage and its answer."""
        self._write({"stage": decided})

    def goes_on_from(self, entry: StateEntry) -> None:
        """Write down the state that this run begins with, before its first event."""
        self._state(entry, begins=True)

    def _state(self, entry: StateEntry, *, begins: bool = False) -> None:
        line = _line(attrs.asdict(entry, recurse=False))
        fits = len(line) <= self._half // _LARGEST_SHARE
        if fits or begins:
            self._write_line(line)
        elif self._states_fit:
            _log.warning(
                "the journal is too small for the state of the policy (%d bytes): raise "
                "spark.elastic.journal.maxSize, or a policy process that is started again begins anew",
                len(line),
            )
        self._states_fit = fits
        self._state_due = self._written + max(_STATE_EVERY, len(line) * _EVENTS_PER_STATE)

    def end_batch(self, state: Callable[[], StateEntry] | None = None) -> None:
        """Hand all that was written to the operating system.

        With `state`, which gives the state of now: write that down if it is time to, and begin a new part if
        this one is full.
        """
        if self._file is None or self._path is None:
            return
        try:
            self._file.flush()
            if state is None:
                return
            if self._written >= self._half:
                self._file.close()
                self._path.replace(self._path.with_name(self._path.name + ".1"))
                self._part += 1
                self._open(self._path)
                self._state(state())
            elif self._written >= self._state_due:
                self._state(state())
        except OSError as error:
            self._give_up(error)

    def close(self) -> None:
        """End the journal; a second time does nothing."""
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                self._give_up(error)
            self._file = None

    def _open(self, path: Path) -> None:
        self._file = open_to_append(path)
        self._written = self._file.seek(0, os.SEEK_END)
        self._state_due = self._written + _STATE_EVERY
        if self._written and os.pread(self._file.fileno(), 1, self._written - 1) != b"\n":
            self._file.write(b"\n")
        header: dict[str, Any] = {
            "journal": FORMAT,
            "version": __version__,
            "application": self._application,
            "part": self._part,
            "settings": self._conf,
        }
        if self._reading is not None:
            header["clock"] = attrs.asdict(self._reading())
        self._write(header)

    def _write(self, value: dict[str, Any]) -> None:
        if self._file is not None:
            self._write_line(_line(value))

    def _write_line(self, line: bytes) -> None:
        if self._file is None:
            return
        try:
            self._file.write(line)
        except OSError as error:
            self._give_up(error)
            return
        self._written += len(line)

    def _give_up(self, error: OSError) -> None:
        _log.warning("no decision journal from here on: %s: %s", self._path, error.strerror or error)
        self.failed = self._required
        file, self._file = self._file, None
        with suppress(OSError):  # said already
            if file is not None:
                file.close()
        if self._path is not None and not isinstance(error, NotOurs):
            with suppress(OSError):
                _set_aside(self._path)


def _set_aside(path: Path) -> None:
    """Give a journal another name, its older part too. Raises OSError.

    Of two that have ended the larger is kept: where the disk is full the next process writes next to nothing.
    """
    ended = path.with_name(path.name + ".ended")
    parts, earlier = _parts(path), _parts(ended)
    gone = earlier if _size(parts) > _size(earlier) else parts
    for part in gone:
        part.unlink()
    if gone is not parts:
        # Between two parts there is only the older one, which then is the whole.
        for part, suffix in zip(parts, (".1", "")[-len(parts) :], strict=False):
            part.replace(ended.with_name(ended.name + suffix))


def _parts(path: Path) -> list[Path]:
    """Return the files of a journal that are there; what is no plain file is left alone."""
    return [part for part in (path.with_name(path.name + ".1"), path) if part.is_file()]


def _size(parts: list[Path]) -> int:
    return sum(part.stat().st_size for part in parts)


def open_journal(
    settings: Settings, snapshot: Snapshot, reading: Callable[[], ClockReading] | None = None
) -> Journal:
    """Open the journal of an application where its settings say, and remove old ones that nobody wants kept.

    `reading` reads the loop's clock.
    """
    place = journal_place(settings, snapshot)
    if place is None:
        return Journal(None)
    path = place.path
    if place.own:
        try:
            make_own_folder(path.parent)
            if not place.kept:
                remove_old(path.parent, time.time() - _KEPT_S)
        except OSError as error:
            _log.warning("no decision journal: %s: %s", path.parent, error.strerror or error)
            return Journal(None)
    journal = Journal(
        path,
        application=snapshot.application,
        settings=settings,
        max_size=settings[application.JOURNAL_MAX_SIZE],
        required=not place.own,
        reading=reading,
    )
    if journal.path is not None:
        _log.info("each decision is written to %s", path)
    return journal


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
