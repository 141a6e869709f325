"""The decision journal: every event with the actions that it caused, so that a run can be replayed.

The room is bounded. A journal that has filled half of it becomes ``NAME.1``, replacing the one that was
there, and a new part begins, with the state of the scheduler: each part can be replayed by itself. The state
is also written down now and then, so that a policy process that is started again has little to read before
it continues (`resume.py`), with a run of its own, which begins with that state. A journal that cannot be
written any more is set aside as ``NAME.ended``: nobody is to continue from what it knew last. Whose files
these may be, and who may read them, says `journal_file.py`.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import attrs

from spark_elastic import __version__
from spark_elastic.core.events import Snapshot
from spark_elastic.core.keys import application
from spark_elastic.gateway.port import JsonObject
from spark_elastic.runtime.clock import Reading
from spark_elastic.runtime.entries import FORMAT, StateEntry
from spark_elastic.runtime.journal_file import NotOurs, make_own_folder, open_to_append, remove_old
from spark_elastic.runtime.journal_place import journal_place
from spark_elastic.settings import Settings

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
        reading: Callable[[], Reading] | None = None,
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
    settings: Settings, snapshot: Snapshot, reading: Callable[[], Reading] | None = None
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
