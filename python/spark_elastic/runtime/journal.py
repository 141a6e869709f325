"""The decision journal: every event with the actions that it caused, so that a run can be replayed.

The size is bounded. A journal that has filled half of its maximum size becomes ``NAME.1``, replacing the
previous one. A new part then starts with the state of the scheduler, so each part can be replayed on its own.
The state is also written from time to time, so that a restarted policy process has little to read before it
continues (`resume.py`). That process writes a run of its own, which starts with this state. A journal that
cannot be written any more is renamed to ``NAME.ended``, so that no process continues from its last state.

A journal is written by default, because its questions (why was that? where was the policy when it died?) are
asked when it is too late to switch it on.
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

# ---- The files of a journal are only for the driver's user, and no files of other users are accepted. The
# usual place for event logs is a folder that every user may write to. So no other user may read what an
# application has been doing. Nothing that another user has put there is followed, written to, or used as the
# state of the policy.


# A symbolic link is not accepted as a journal, and opening a pipe must not wait for its other end.
_CAREFULLY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FILE = 0o600
_FOLDER = 0o700
_MOUNTS = Path("/proc/self/mounts")
# File systems local to one host, where every process that could hold a lock sees the locks of the others.
_LOCAL = frozenset({"btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"})


class NotOurs(OSError):
    """The place of the journal has something that must not be touched; the text says what."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.strerror = why


def open_to_append(path: Path) -> IO[bytes]:
    """Open a journal, and create it and the folders above it if missing. Raises OSError, NotOurs.

    The journal is locked while it is open. The lock shows that a process writes it, however old its last line
    is.
    """
    _make_folder(path.parent)
    file = _open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    os.fchmod(file, _FILE)
    with suppress(OSError):  # on a file system without locks, no journal is removed
        fcntl.flock(file, fcntl.LOCK_SH)
    return os.fdopen(file, "ab")


def read(path: Path) -> bytes:
    """Return the content of a journal. Raises OSError, NotOurs."""
    with os.fdopen(_open(path, os.O_RDONLY), "rb") as file:
        return file.read()


def make_own_folder(folder: Path) -> None:
    """Create a private folder where every user can create folders. Raises OSError, NotOurs."""
    _make_folder(folder)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotOurs("it is a symbolic link: remove it")
    if found.st_uid != os.geteuid():
        raise NotOurs(f"it belongs to another user ({found.st_uid}): set spark.elastic.journal.dir")
    folder.chmod(_FOLDER)


def remove_old(folder: Path, before: float) -> None:
    """Remove the journals that no process writes, and that were last written before `before` (s since epoch).

    Nothing is removed where other hosts may have a journal, because their locks are not visible here. Raises
    OSError.
    """
    if not _is_local(folder):
        return
    for file in folder.glob("spark-elastic-*.jsonl*"):
        with suppress(FileNotFoundError):  # another application was faster
            if file.lstat().st_mtime < before and not _is_written(file):
                file.unlink()


def _is_written(part: Path) -> bool:
    """Return whether a process has the journal of a part open; True if that is unknown."""
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
    """Return whether a folder is on a file system of this host; True if the system does not tell."""
    try:
        mounts = [line.split(" ")[1:3] for line in _MOUNTS.read_text(encoding="utf-8").splitlines()]
    except OSError:
        return True
    real = folder.resolve()
    at = [(len(point), kind) for point, kind in mounts if real.is_relative_to(point)]
    # If several file systems are mounted at one place, the last one counts.
    _, kind = max(enumerate(at), key=lambda found: (found[1][0], found[0]), default=(0, (0, "")))[1]
    return kind in _LOCAL


def _open(path: Path, flags: int) -> int:
    if path.is_symlink():  # a clearer message here; the actual protection is O_NOFOLLOW
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
    """Create a folder and those above it, readable by this user only; existing folders stay as they are."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(_FOLDER, exist_ok=True)


# The place of an application's journal. The user may configure it. Otherwise it is beside local event logs,
# as both are kept for the same reason. Otherwise it is among the temporary files, where old journals are
# removed. The user has not asked for these two places, so failing to write there is no error. They are
# folders of our own, readable by the driver's user only. Each user has a separate one, since event logs of
# several users often share a folder.


# Spark's own default for spark.eventLog.dir.
_SPARK_EVENT_LOGS = "/tmp/spark-events"


@frozen(kw_only=True)
class JournalPlace:
    """The file of a journal; `own` says that its folder is ours, `kept` that nothing is removed from it."""

    path: Path
    own: bool
    kept: bool = True


def journal_place(settings: Settings, snapshot: Snapshot) -> JournalPlace | None:
    """Return the place of an application's journal, or None if it has none."""
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
            # Not directly among them: Spark's history server takes each file there for an event log.
            return JournalPlace(path=logs / _own_folder() / name, own=True)
    temporary = _temporary_folder(snapshot)
    if temporary is None:
        return None
    return JournalPlace(path=temporary / _own_folder() / name, own=True, kept=False)


def journal_name(application: str) -> str:
    """Return the file name of the journal of an application, given by its id."""
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
    """Return Spark's folder for temporary files if it is a local path, else the system's, if any."""
    folders = os.environ.get("SPARK_LOCAL_DIRS") or snapshot.conf.get("spark.local.dir", "")
    first = _local(folders.split(",")[0].strip())
    if first is not None and first.is_absolute():
        return first
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:  # none of the usual folders can be written to
        return None


def _local(place: str) -> Path | None:
    """Return the path of a plain path or a file: URI, or None for any other file system."""
    uri = urlsplit(place)
    if not uri.scheme:
        return Path(place)
    return Path(unquote(uri.path)) if uri.scheme == "file" and uri.netloc in ("", "localhost") else None


_log = logging.getLogger(__name__)

# This many bytes are read again in about 0.2 s on one core.
_STATE_EVERY = 1 << 20
# A large state is written less often, and one that takes more than a fourth of a part is never written.
_EVENTS_PER_STATE = 8
_LARGEST_SHARE = 4
# A journal among temporary files is kept for this time after its last line.
_KEPT_S = 7 * 24 * 3_600


class Journal:
    """Writes a run to a file; without a `path` it writes nothing. `reading` reads the loop's clock.

    Disk errors never reach the policy. They are logged once, the journal ends there, and is set aside. The
    journal has then `failed` if it is `required`, which means that the user has configured it.
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
        """The file that is written, or None if there is none or it has ended."""
        return self._path if self._file is not None else None

    def event(self, event: JsonObject) -> None:
        """Write an event, before it is handled."""
        self._write({"event": event})

    def actions(self, actions: Sequence[JsonObject]) -> None:
        """Write the actions that the last event caused."""
        if actions:
            self._write({"actions": list(actions)})

    def stage(self, decided: JsonObject) -> None:
        """Write a question about a batch stage and its answer."""
        self._write({"stage": decided})

    def goes_on_from(self, entry: StateEntry) -> None:
        """Write the state that this run starts with, before its first event."""
        self._state(entry, begins=True)

    def _state(self, entry: StateEntry, *, begins: bool = False) -> None:
        line = _line(attrs.asdict(entry, recurse=False))
        fits = len(line) <= self._half // _LARGEST_SHARE
        if fits or begins:
            self._write_line(line)
        elif self._states_fit:
            _log.warning(
                "the journal is too small for the state of the policy (%d bytes): raise "
                "spark.elastic.journal.maxSize, or a restarted policy process starts over",
                len(line),
            )
        self._states_fit = fits
        self._state_due = self._written + max(_STATE_EVERY, len(line) * _EVENTS_PER_STATE)

    def end_batch(self, state: Callable[[], StateEntry] | None = None) -> None:
        """Hand everything written so far to the operating system.

        `state` returns the current state. If given, the state is written when enough has been written since
        the last one, and a new part starts if this one is full.
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
        """Close the journal; a second call does nothing."""
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
        _log.warning("decision journal stopped: %s: %s", self._path, error.strerror or error)
        self.failed = self._required
        file, self._file = self._file, None
        with suppress(OSError):  # already logged
            if file is not None:
                file.close()
        if self._path is not None and not isinstance(error, NotOurs):
            with suppress(OSError):
                _set_aside(self._path)


def _set_aside(path: Path) -> None:
    """Rename a journal and its older part. Raises OSError.

    Of two ended journals the larger one is kept: on a full disk, the next process writes almost nothing.
    """
    ended = path.with_name(path.name + ".ended")
    parts, earlier = _parts(path), _parts(ended)
    gone = earlier if _size(parts) > _size(earlier) else parts
    for part in gone:
        part.unlink()
    if gone is not parts:
        # Between two parts only the older one exists, which is then the whole journal.
        for part, suffix in zip(parts, (".1", "")[-len(parts) :], strict=False):
            part.replace(ended.with_name(ended.name + suffix))


def _parts(path: Path) -> list[Path]:
    """Return the existing files of a journal; anything that is not a plain file is ignored."""
    return [part for part in (path.with_name(path.name + ".1"), path) if part.is_file()]


def _size(parts: list[Path]) -> int:
    return sum(part.stat().st_size for part in parts)


def open_journal(
    settings: Settings, snapshot: Snapshot, reading: Callable[[], ClockReading] | None = None
) -> Journal:
    """Open the journal of an application where its settings say, and remove old ones that need not be kept.

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
