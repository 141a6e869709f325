"""A journal as a source: its events run through a scheduler once more, and the API looks at that."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from spark_elastic.core.events import Event, Snapshot
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.core.settings import CoreSettings
from spark_elastic.http.app import API, make_application
from spark_elastic.http.wsgi import SCRIPT_NAME, HttpRequest, call
from spark_elastic.runtime.board import Board, Watched
from spark_elastic.runtime.entries import Entry, EventEntry, Header, Unreadable, read_journal
from spark_elastic.runtime.replay import Answered, Failed, Player, StateRefused
from spark_elastic.version import __version__
from spark_elastic_tools.client import Busy, Json, Refused, UnknownQuery


class Recorded:
    """Follows the entries of a journal one by one, and answers as the driver did at that point.

    What it shows is decided anew, from the same events: as `spark-elastic replay` shows, to the same end.
    """

    def __init__(self) -> None:
        self._board = Board()
        self._application = make_application(self._board)
        self._player = Player(_Seen(self._board))
        self.known = False

    def read(self, entry: Entry) -> None:
        """Follow one entry. Raises Unreadable."""
        if isinstance(entry, Header):
            self._check(entry)
        elif isinstance(entry, EventEntry) and self._player.policy is not None:
            self._introduce(entry.event)
        for step in self._player.read(entry):
            match step:
                case StateRefused(reason=reason):
                    raise Unreadable(reason)
                case Failed(error=error):
                    raise error
                case Answered(stage=stage):
                    self._board.decided(dict(stage.written))
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

    def _check(self, header: Header) -> None:
        if header.version != __version__:
            raise Unreadable(
                f"written by spark-elastic {header.version}, this is {__version__}: "
                f"type `pip install 'spark-elastic[cli]=={header.version}'`"
            )
        if self._player.header is not None and header.part == 0:
            self._board.restarts += 1

    def _introduce(self, event: Event) -> None:
        """Let the board know the application: by a snapshot, or by the header where that is gone."""
        header, settings = self._player.header, self._player.settings
        assert header is not None
        name = header.application
        if isinstance(event, Snapshot):
            self._board.begin(settings, event)
        elif not self.known:
            first = Snapshot(id="", at=0, application=name, application_name=name, spark_version="(unknown)")
            self._board.begin(settings, first)
        self.known = True


@frozen
class _Seen:
    """Makes schedulers that a board lets be seen."""

    board: Board

    def __call__(self, settings: CoreSettings) -> Watched:
        return self.board.scheduler(settings)

    def restore(self, state: Mapping[str, Any]) -> Watched:
        return self.board.watch(Scheduler.restore(state))


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
        raise Refused(f"the journal {path} has no events yet")
    return journal
