"""Find event logs in files and folders, and read their events.

A log is one file, or a folder `eventlog_v2_…` with the parts of a rolled log. An application that still runs
has the suffix `.inprogress` at its file, or at the status file in its folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import IO, Any

from attrs import field, frozen

from spark_elastic_tools.event_logs.codecs import CodecError, decompressed

Json = Mapping[str, Any]

_ROLLED = "eventlog_v2_"
_STATUS = "appstatus_"
_PART = re.compile(r"events_(\d+)_.*?(\.compact)?")
_UNFINISHED = ".inprogress"
_LONGEST_LINE = 256 << 20


class LogError(Exception):
    """An event log cannot be read; the message says what was found, what is allowed and what to type."""


@frozen
class Part:
    """One file of a log: its name, and how to open it."""

    name: str
    open: Callable[[], AbstractContextManager[IO[bytes]]] = field(eq=False, repr=False)


@frozen(kw_only=True)
class EventLog:
    """The log of one application, of `parts` in order. An `unfinished` one may still be written."""

    name: str
    parts: tuple[Part, ...]
    unfinished: bool = False

    def events(self, wanted: Callable[[str], bool] = lambda _: True) -> Iterator[Json]:
        """Yield the events whose class is `wanted`, in order, a line at a time. Raises LogError.

        The last line of an unfinished part may be incomplete, and is left out then.
        """
        for part in self.parts:
            yield from _events(part, wanted)


def find_logs(place: Path) -> list[EventLog]:
    """Return the logs at a path: a file, the folder of a rolled log, or a folder with any of them.

    Raises LogError if there is none.
    """
    if place.is_file():
        return [_single(place)]
    if not place.is_dir():
        raise LogError(f"{place} is not there: name an event log, or the folder in spark.eventLog.dir")
    if place.name.startswith(_ROLLED):
        return [_rolled(place)]
    found = []
    for entry in sorted(place.iterdir()):
        if entry.is_dir() and entry.name.startswith(_ROLLED):
            found.append(_rolled(entry))
        elif entry.is_file() and not entry.name.startswith((".", _STATUS)):
            found.append(_single(entry))
    if not found:
        raise LogError(
            f"{place} has no event log: name an event log, or the folder in spark.eventLog.dir of an "
            "application that ran with spark.eventLog.enabled"
        )
    return found


def _opened(path: Path) -> IO[bytes]:
    return path.open("rb")


def _single(path: Path) -> EventLog:
    if _PART.fullmatch(path.name) and path.parent.name.startswith(_ROLLED):
        raise LogError(f"{path} is one part of a rolled log: name its folder, {path.parent}")
    part = Part(str(path), partial(_opened, path))
    return EventLog(name=path.name, parts=(part,), unfinished=path.name.endswith(_UNFINISHED))


def _rolled(folder: Path) -> EventLog:
    named = {path.name: Part(str(path), partial(_opened, path)) for path in folder.iterdir()}
    return rolled_log(folder.name, named)


def rolled_log(name: str, files: Mapping[str, Part]) -> EventLog:
    """Return the rolled log in a folder with these files. Raises LogError if it has no part.

    A part that Spark has compacted stands for all before it.
    """
    parts: dict[tuple[int, bool], Part] = {}
    for file, part in files.items():
        match = _PART.fullmatch(file)
        if match is not None:
            parts[int(match[1]), match[2] is not None] = part
    if not parts:
        raise LogError(f"{name} has no part events_1_…: copy the whole folder of the rolled log")
    first = max((number for number, compact in parts if compact), default=-1)
    kept = [parts[key] for key in sorted(parts) if key[0] > first or key == (first, True)]
    unfinished = any(file.startswith(_STATUS) and file.endswith(_UNFINISHED) for file in files)
    return EventLog(name=name, parts=tuple(kept), unfinished=unfinished)


_CLASS = re.compile(rb'\{"Event":"([^"]+)"')


def _events(part: Part, wanted: Callable[[str], bool]) -> Iterator[Json]:
    try:
        with part.open() as file:
            pending: tuple[int, bytes, Exception] | None = None
            for number, line in enumerate(_lines(decompressed(file)), 1):
                if pending is not None:
                    raise _no_json(part, *pending)
                name = _CLASS.match(line)
                if name is not None and not wanted(name[1].decode(errors="replace")):
                    continue
                try:
                    event = json.loads(line)
                except ValueError as error:
                    # The writer may have stopped here; any later line is an error.
                    pending = (number, line, error)
                    continue
                if not isinstance(event, dict) or not isinstance(event.get("Event"), str):
                    raise LogError(
                        f"{part.name} is no event log of Spark: line {number} is no event, "
                        'which starts with {"Event": name a file below spark.eventLog.dir'
                    )
                if wanted(event["Event"]):
                    yield event
            if pending is not None and pending[0] == 1:
                raise _no_json(part, *pending)
    except CodecError as error:
        raise LogError(f"{part.name} {error}") from error
    except OSError as error:
        raise LogError(f"{part.name} cannot be read ({error.strerror or error}): check the path") from error


def _no_json(part: Part, number: int, line: bytes, error: Exception) -> LogError:
    if number == 1:
        return LogError(
            f"{part.name} is no event log of Spark: line 1 is no JSON but starts with "
            f"{line[:20]!r}: name a file below spark.eventLog.dir"
        )
    return LogError(f"{part.name} is damaged: line {number} is no JSON ({error}): copy the log again")


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a text that comes in pieces, without empty ones."""
    rest: list[bytes] = []
    size = 0
    for piece in pieces:
        first, *others = piece.split(b"\n")
        rest.append(first)
        size += len(first)
        if size > _LONGEST_LINE:
            raise LogError(f"a line is longer than {_LONGEST_LINE >> 20} MiB: this is no event log of Spark")
        if others:
            if line := b"".join(rest).strip():
                yield line
            yield from (line for line in others[:-1] if line.strip())
            rest, size = [others[-1]], len(others[-1])
    if line := b"".join(rest).strip():
        yield line
