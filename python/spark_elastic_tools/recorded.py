"""A journal as a source: its events are replayed through a scheduler, and the API shows the result."""

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
from spark_elastic.runtime.entries import Entry, EventEntry, Header, Unreadable, read_journal
from spark_elastic.runtime.publisher import Publisher, Watched
from spark_elastic.runtime.replay import Answered, Failed, Player, StateRefused
from spark_elastic.runtime.request_queue import RequestQueue
from spark_elastic.version import __version__
from spark_elastic_tools.client import Busy, Json, Refused, UnknownQuery


class Recorded:
    """Follows a journal entry by entry and answers as the driver did at that point.

    The answers come from a new scheduler that processes the same events; `spark-elastic replay` checks that
    its decisions match the recorded ones.
    """

    def __init__(self) -> None:
        self._publisher = Publisher()
        self._application = make_application(self._publisher, RequestQueue())
        self._player = Player(_Seen(self._publisher))
        self.known = False

    def read(self, entry: Entry) -> None:
        """Process one entry. Raises Unreadable."""
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
                    self._publisher.stages.add(dict(stage.written))
                    list(self._publisher.stages.take_unwritten())  # the journal already holds them

    def get(self, path: str) -> Json:
        """Return the API's document at `path`. Raises Failure."""
        self._publisher.publish()
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
            self._publisher.restarts += 1

    def _introduce(self, event: Event) -> None:
        """Introduce the application, by a snapshot or, if that is missing, by the header."""
        header, settings = self._player.header, self._player.settings
        assert header is not None
        name = header.application
        if isinstance(event, Snapshot):
            self._publisher.begin(settings, event)
        elif not self.known:
            first = Snapshot(id="", at=0, application=name, application_name=name, spark_version="(unknown)")
            self._publisher.begin(settings, first)
        self.known = True


@frozen
class _Seen:
    """Creates schedulers whose state a publisher can show."""

    publisher: Publisher

    def __call__(self, settings: CoreSettings) -> Watched:
        return self.publisher.scheduler(settings)

    def restore(self, state: Mapping[str, Any]) -> Watched:
        return self.publisher.watch(Scheduler.restore(state))


def recorded(path: Path) -> Recorded:
    """Read a whole journal, including its older part. Raises Refused if it cannot be read."""
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
