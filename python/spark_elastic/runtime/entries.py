"""The lines of a journal.

A journal is a text file with one JSON object per line:

    {"journal": 1, "version": "0.1.0", "application": "app-1", "part": 0, "settings": {"spark.…": "…"},
     "clock": {"at": 1700000000000, "monotonic": 86400000}}
    {"event": {"type": "Snapshot", "id": "s1", "at": 1700000000000, …}}
    {"actions": [{"type": "Configure", "id": "a1", "cause": "s1", …}, …]}
    {"state": {…}, "own_events": 3, "last_event": "s17"}
    {"stage": {"question": {"type": "Ranges", …}, "answer": {"type": "RangesAnswer", …}, …}}

A header with part 0 starts a run of the policy process: a new scheduler with these settings, or, if a state
follows, a scheduler restored from it. A higher part continues where the part before it ended, with the same
scheduler, and its state follows. Further states are written in between, so that restoring the scheduler needs
little reading. Each event is followed by the actions that it caused, unless there were none. Questions about
batch stages are entries of their own, with their answers. They are in the order of the answers, and are
written a moment after them. A process that was killed may leave a truncated line, after which the next run
starts. The clock reading in a header is for a process that resumes from there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from spark_elastic.core.actions import Action
from spark_elastic.core.batch.questions import Question
from spark_elastic.core.events import Event
from spark_elastic.runtime.clock import ClockReading
from spark_elastic.wire import WireError, decode_action, decode_event, decode_question

FORMAT = 1


class Unreadable(ValueError):
    """The file is not a journal that this version can read; the text says why."""


@frozen(kw_only=True)
class Header:
    """The start of a run (part 0), or of a further part of it."""

    version: str
    application: str
    part: int
    settings: Mapping[str, str] = field(factory=dict)
    clock: ClockReading | None = None


@frozen(kw_only=True)
class EventEntry:
    """An event that was handled."""

    event: Event


@frozen(kw_only=True)
class ActionsEntry:
    """The actions that the event before it caused."""

    actions: tuple[Action, ...]


@frozen(kw_only=True)
class StageEntry:
    """A question about a batch stage, and its answer as written; `written` is the complete entry."""

    question: Question
    answer: Mapping[str, Any]
    written: Mapping[str, Any]


@frozen(kw_only=True)
class StateEntry:
    """The complete state of the scheduler between two events.

    `own_events` is the number of events created by the runtime itself, `last_event` the id of the last event.
    """

    state: Mapping[str, Any]
    own_events: int
    last_event: str


Entry = Header | EventEntry | ActionsEntry | StageEntry | StateEntry


def parse_line(line: str) -> Entry:
    """Parse one line. Raises Unreadable."""
    try:
        value = json.loads(line)
        if "event" in value:
            return EventEntry(event=decode_event(value["event"]))
        if "actions" in value:
            return ActionsEntry(actions=tuple(decode_action(action) for action in value["actions"]))
        if "stage" in value:
            stage = value["stage"]
            return StageEntry(
                question=decode_question(stage["question"]), answer=stage["answer"], written=stage
            )
        if "state" in value:
            return StateEntry(
                state=value["state"], own_events=value["own_events"], last_event=value["last_event"]
            )
        if value["journal"] != FORMAT:
            raise Unreadable(f"format {value['journal']}, this version reads format {FORMAT}")
        return Header(
            version=value["version"],
            application=value["application"],
            part=value["part"],
            settings=value["settings"],
            clock=ClockReading(**value["clock"]) if "clock" in value else None,
        )
    except Unreadable:
        raise
    except WireError as error:
        raise Unreadable(str(error)) from error
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Unreadable("no line of a journal") from None


def parse_lines(lines: Iterable[tuple[str, str]]) -> Iterator[tuple[str, Entry]]:
    """Parse (place, line) pairs into (place, entry) pairs. Raises Unreadable with the place.

    A line without a line end was truncated when a process was killed, and is skipped. So is such a line in
    the middle, to which the next run has added the line end: the header of that run must follow it.
    """
    cut: Unreadable | None = None
    for place, line in lines:
        if not line.endswith("\n"):
            continue
        try:
            entry = parse_line(line)
        except Unreadable as error:
            if cut is not None:
                raise cut from None
            cut = Unreadable(f"{place}: {error}")
            continue
        if cut is not None and not (isinstance(entry, Header) and entry.part == 0):
            raise cut
        cut = None
        yield place, entry
    if cut is not None:
        raise cut


def read_journal(path: Path) -> Iterator[tuple[str, Entry]]:
    """Read a journal as (place, entry) pairs, starting with its older part ``PATH.1`` if there is one.

    Raises Unreadable, also if the file cannot be opened.
    """
    older = path.with_name(path.name + ".1")
    return parse_lines(_lines([older, path] if older.exists() else [path]))


def _lines(paths: list[Path]) -> Iterator[tuple[str, str]]:
    for path in paths:
        try:
            with path.open(encoding="utf-8", newline="\n") as file:
                for number, line in enumerate(file, 1):
                    yield f"{path}:{number}", line
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "no text"
            raise Unreadable(f"{path}: {reason}") from error
