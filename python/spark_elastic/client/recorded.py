"""A journal as a source: its events run through a scheduler once more, and the API looks at that."""

from __future__ import annotations

import json
from pathlib import Path

from spark_elastic import __version__
from spark_elastic.client.failures import Busy, Refused, UnknownQuery
from spark_elastic.client.source import Json
from spark_elastic.core.events import Event, Snapshot
from spark_elastic.core.saved import NotRestorable
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.rest.app import API, make_application
from spark_elastic.rest.messages import HttpRequest
from spark_elastic.rest.wsgi import SCRIPT_NAME, call
from spark_elastic.runtime.board import Board, Watched
from spark_elastic.runtime.entries import (
    Entry,
    EventEntry,
    Header,
    StageEntry,
    StateEntry,
    Unreadable,
    read_journal,
)
from spark_elastic.settings import Settings, SettingsError, load


class Recorded:
    """Follows the entries of a journal one by one, and answers as the driver did at that point.

    What it shows is decided anew, from the same events: as `spark-elastic replay` shows, to the same end.
    """

    def __init__(self) -> None:
        self._board = Board()
        self._application = make_application(self._board)
        self._policy: Watched | None = None
        self._settings: Settings | None = None
        self._header: Header | None = None
        self.known = False
        self._begins = False

    def read(self, entry: Entry) -> None:
        """Follow one entry. Raises Unreadable."""
        match entry:
            case Header():
                self._begin(entry)
            case StateEntry():
                self._take_up(entry)
            case EventEntry(event=event):
                self._begins = False
                if self._policy is not None:
                    self._introduce(event)
                    self._policy.handle(event)
            case StageEntry(written=written):
                self._board.decided(dict(written))
                list(self._board.take_decided())  # they are written down already

    def get(self, path: str) -> Json:
        """Return the document that the API would have at `path`. Raises Failure."""
        self._board.publish()
        path, _, query = path.partition("?")
        request = HttpRequest(
            id="", method="GET", path=f"{SCRIPT_NAME}{API}{path}", query=query, may_modify=False, left_ms=0
        )
        answer = call(self._application, request)
        value: Json = json.loads(answer.body)
        if answer.status == 200:
            return value
        kinds = {404: UnknownQuery, 503: Busy}
        raise kinds.get(answer.status, Refused)("\n".join(value["errors"]))

    def _begin(self, header: Header) -> None:
        if header.version != __version__:
            raise Unreadable(
                f"written by spark-elastic {header.version}, this is {__version__}: "
                f"type `pip install 'spark-elastic[cli]=={header.version}'`"
            )
        self._begins = header.part == 0
        if self._header is not None and self._begins:
            self._board.restarts += 1
        if self._begins or self._header is None:
            self._settings = _settings(header)
        if self._begins:
            self._policy = self._board.watch(Scheduler(self._settings.core())) if self._settings else None
        self._header = header

    def _take_up(self, entry: StateEntry) -> None:
        """Go on from a state where a run begins with one, or where what was before is gone."""
        if self._policy is not None and not self._begins:
            return
        try:
            self._policy = self._board.watch(Scheduler.restore(entry.state))
        except NotRestorable as error:
            raise Unreadable(f"the state cannot be taken up: {error}") from error

    def _introduce(self, event: Event) -> None:
        """Let the board know the application: by a snapshot, or by the header where that is gone."""
        assert self._settings is not None
        assert self._header is not None
        name = self._header.application
        if isinstance(event, Snapshot):
            self._board.begin(self._settings, event)
        elif not self.known:
            first = Snapshot(id="", at=0, application=name, application_name=name, spark_version="(unknown)")
            self._board.begin(self._settings, first)
        self.known = True


def _settings(header: Header) -> Settings:
    try:
        return load(header.settings)
    except SettingsError as error:
        raise Unreadable(f"its settings are not those of this version: {error}") from error


def recorded(path: Path) -> Recorded:
    """Read a whole journal, the older part of it too. Raises Refused if it cannot be read."""
    journal = Recorded()
    try:
        for place, entry in read_journal(path):
            try:
                journal.read(entry)
            except Unreadable as error:
                raise Unreadable(f"{place}: {error}") from error
    except Unreadable as error:
        raise Refused(f"no journal that can be shown: {error}") from error
    if not journal.known:
        raise Refused(f"the journal {path} tells of nothing yet")
    return journal
