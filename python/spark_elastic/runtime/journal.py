"""The decision journal: every event with the actions that it caused, so that a run can be replayed.

The room is bounded. A journal that has filled half of it becomes ``NAME.1``, replacing the one that was
there, and a new part begins. From then on the file alone cannot be replayed, since a scheduler's state is not
written: both parts together can, until the second such change throws the beginning away. What was decided
lately is always there to be read. A policy process that is started again appends a run of its own.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from spark_elastic import __version__
from spark_elastic.core.events import Snapshot
from spark_elastic.gateway.port import JsonObject
from spark_elastic.runtime.entries import FORMAT
from spark_elastic.settings import Settings

_log = logging.getLogger(__name__)

# Spark's own default for spark.eventLog.dir.
_SPARK_EVENT_LOGS = "/tmp/spark-events"
# A folder of its own: Spark's history server takes every file beside the event logs for one of them.
_FOLDER_BESIDE_EVENT_LOGS = "spark-elastic"


class Journal:
    """Where a run is written down; without a `path` it is not.

    Disk errors never reach the policy: they are said once, the journal ends there, and has `failed`.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        application: str = "",
        settings: Settings | None = None,
        max_size: int = 0,
    ) -> None:
        self._path = path
        self._application = application
        self._conf = settings.as_conf() if settings is not None else {}
        self._half = max_size // 2
        self._part = 0
        self._written = 0
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

    def end_batch(self) -> None:
        """Hand all that was written to the operating system; begin a new part if this one is full."""
        if self._file is None or self._path is None:
            return
        try:
            self._file.flush()
            if self._written >= self._half:
                self._file.close()
                self._path.replace(self._path.with_name(self._path.name + ".1"))
                self._part += 1
                self._open(self._path)
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
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab")
        self._written = self._file.tell()
        if self._written and not _ends_with_newline(path):
            self._file.write(b"\n")
        self._write(
            {
                "journal": FORMAT,
                "version": __version__,
                "application": self._application,
                "part": self._part,
                "settings": self._conf,
            }
        )

    def _write(self, value: dict[str, Any]) -> None:
        if self._file is None:
            return
        line = json.dumps(value, separators=(",", ":")).encode() + b"\n"
        try:
            self._file.write(line)
        except OSError as error:
            self._give_up(error)
            return
        self._written += len(line)

    def _give_up(self, error: OSError) -> None:
        _log.warning("no decision journal from here on: %s: %s", self._path, error.strerror or error)
        self.failed = True
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # said already
                file.close()


def open_journal(settings: Settings, snapshot: Snapshot) -> Journal:
    """Open the journal of an application where its settings say."""
    folder = journal_folder(settings, snapshot)
    if folder is None:
        return Journal(None)
    return Journal(
        folder / journal_name(snapshot.application),
        application=snapshot.application,
        settings=settings,
        max_size=settings.journal_max_size,
    )


def journal_name(application: str) -> str:
    """Return the file name of the journal of an application (its id)."""
    return f"spark-elastic-{re.sub(r'[^A-Za-z0-9._-]', '_', application)}.jsonl"


def journal_folder(settings: Settings, snapshot: Snapshot) -> Path | None:
    """Return where the journal goes, None for nowhere."""
    if settings.journal_dir is not None:
        return _local(settings.journal_dir)
    if snapshot.conf.get("spark.eventLog.enabled", "false").lower() != "true":
        return None
    logs = _local(snapshot.conf.get("spark.eventLog.dir", _SPARK_EVENT_LOGS))
    return logs / _FOLDER_BESIDE_EVENT_LOGS if logs is not None else None


def _local(place: str) -> Path | None:
    """Return the path of a plain path or a file: URI, None for any other file system."""
    uri = urlsplit(place)
    if not uri.scheme:
        return Path(place)
    return Path(unquote(uri.path)) if uri.scheme == "file" and uri.netloc in ("", "localhost") else None


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"
