"""Resume after a policy process of the same application has died, from its journal.

The last state in the journal is restored, and the events after it are handled again. The actions of these
events belong to the past and are discarded. The new process starts with a snapshot, which then shows what has
changed in the meantime. A problem with the journal is logged once, and the process starts over without it.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from spark_elastic.core.events import Snapshot
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.runtime.entries import Entry, Header, Unreadable, parse_line
from spark_elastic.runtime.journal import journal_place, read
from spark_elastic.runtime.loop import Decider, Resumed
from spark_elastic.runtime.replay import Failed, Handled, Player, StateRefused, StateRestored
from spark_elastic.settings import Settings
from spark_elastic.version import __version__

# The driver waits for an answer to its snapshot, and so does a query that is started meanwhile.
LONGEST_S = 2.0

_HEADER = b'{"journal":'
_STATE = b'{"state":'
# Entries that do not contribute to the scheduler's state.
_OTHERS = (b'{"actions":', b'{"stage":')

_log = logging.getLogger(__name__)


def resume(
    settings: Settings, snapshot: Snapshot, watch: Callable[[Scheduler], Decider] = lambda policy: policy
) -> Resumed | None:
    """Return what the previous process has left, or None if there is nothing or it cannot be used.

    `watch` wraps the scheduler.
    """
    place = journal_place(settings, snapshot)
    if place is None or not os.path.lexists(place.path):
        return None
    path = place.path
    began = time.monotonic()
    try:
        lines = _since_the_last_state(path)
        if lines is None:
            return None
        resumed, events = _read(lines, settings, snapshot, began + LONGEST_S, watch)
    except Unreadable as error:
        _log.warning("starting over, without its earlier state: %s: %s", path, error)
        return None
    except Exception as error:  # what ended the previous process must not end this one
        _log.warning("starting over, without its earlier state: %s: %s", type(error).__name__, error)
        return None
    took_ms = (time.monotonic() - began) * 1000
    _log.info("resumed from its journal: %d events replayed in %.0f ms", events, took_ms)
    return resumed


def _since_the_last_state(path: Path) -> list[bytes] | None:
    """Return the lines that lead to the end: a header, possibly a state, events; None if nothing was handled.

    A truncated line at the end is left out. Raises Unreadable.
    """
    later: list[bytes] = []
    for file in (path, path.with_name(path.name + ".1")):
        try:
            content = read(file)
        except FileNotFoundError:
            break
        except OSError as error:
            raise Unreadable(error.strerror or str(error)) from error
        content = content[: content.rfind(b"\n") + 1]
        while (header := _last_line(content, _HEADER)) is not None:
            run = content[header:]
            state = _last_line(run, _STATE)
            lines = run[: run.find(b"\n") + 1].splitlines() + run[state or run.find(b"\n") + 1 :].splitlines()
            if state is not None or (len(lines) > 1 and _is_first_part(lines[0])):
                return lines + later
            # Nothing to continue from: the run ended right after its start, or the state is in an older part.
            later = lines[1:] + later
            content = content[:header]
    if later:
        raise Unreadable("it has neither its start nor a saved state")
    return None


def _last_line(content: bytes, beginning: bytes) -> int | None:
    """Return the offset of the last line that starts with `beginning`, or None if there is none."""
    found = content.rfind(b"\n" + beginning)
    if found >= 0:
        return found + 1
    return 0 if content.startswith(beginning) else None


def _is_first_part(line: bytes) -> bool:
    header = _parse(line)
    return isinstance(header, Header) and header.part == 0


def _parse(line: bytes) -> Entry:
    try:
        return parse_line(line.decode())
    except UnicodeDecodeError as error:
        raise Unreadable("no text") from error


def _read(
    lines: list[bytes],
    settings: Settings,
    snapshot: Snapshot,
    deadline: float,
    watch: Callable[[Scheduler], Decider],
) -> tuple[Resumed, int]:
    header = _parse(lines[0])
    assert isinstance(header, Header)
    _check(header, settings.as_conf(), snapshot)
    player, own_events, last_event, driver_event = Player(Scheduler), 0, "", 0
    events = 0
    for entry in _entries(lines):
        if time.monotonic() > deadline:
            raise Unreadable(f"it takes longer than {LONGEST_S:g} s to read")
        for step in player.read(entry):
            match step:
                case StateRestored(entry=state):
                    own_events, last_event = state.own_events, state.last_event
                    driver_event = _number("s", last_event)
                case Handled(event=event):
                    events += 1
                    last_event = event.id
                    own_events = max(own_events, _number("r", last_event))
                    driver_event = max(driver_event, _number("s", last_event))
                case StateRefused(reason=reason):
                    raise Unreadable(reason)
                case Failed(error=error):
                    raise error
    if _number("s", snapshot.id) <= driver_event:
        raise Unreadable("it is that of another driver")  # each driver counts its events from 1
    assert player.policy is not None
    resumed = Resumed(
        policy=watch(player.policy),
        own_events=own_events,
        last_event=last_event,
        last_at=player.policy.now,
        clock=header.clock,
        file=player.policy.policy_file,
    )
    return resumed, events


def _entries(lines: list[bytes]) -> Iterator[Entry]:
    for line in lines:
        if not line.startswith(_OTHERS):
            yield _parse(line)


def _check(header: Header, conf: Mapping[str, str], snapshot: Snapshot) -> None:
    if header.application != snapshot.application:
        raise Unreadable(f"it is that of application {header.application}")
    if header.version != __version__:
        raise Unreadable(f"it was written by version {header.version}")
    if header.settings != conf:
        raise Unreadable("it was written with other settings")


def _number(sender: str, event: str) -> int:
    """Return the count in an event's id if `sender` created it, else 0."""
    count = event.removeprefix(sender)
    return int(count) if count != event and count.isdigit() else 0
