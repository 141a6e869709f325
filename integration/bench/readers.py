"""Clients that read our REST API, or Spark's own, at a steady rate."""

from __future__ import annotations

import http.client
import itertools
import json
import threading
import time
import urllib.request
from collections.abc import Sequence
from types import TracebackType
from urllib.parse import urlsplit

from attrs import frozen

_API = "/elastic/api/v1"
_SPARKS_API = "/api/v1/applications"
_TIMEOUT_S = 30.0
_THREADS = 4


@frozen
class Reads:
    """The reads of a client: paths at a host, one after another."""

    host: str
    paths: Sequence[str]


def reads_of(ui: str) -> Reads:
    """Return the reads of a page that shows everything, for the first query of the application."""
    with urllib.request.urlopen(f"{ui}{_API}/queries", timeout=_TIMEOUT_S) as answer:
        query = json.load(answer)["queries"][0]["id"]
    one = f"/queries/{query}"
    paths = ("/overview", "/queries", one, f"{one}/rescales", "/decisions?limit=20")
    return Reads(urlsplit(ui).netloc, [_API + path for path in paths])


def reads_of_spark(ui: str) -> Reads:
    """Return comparable reads of Spark's own API: what runs, and where."""
    with urllib.request.urlopen(f"{ui}{_SPARKS_API}", timeout=_TIMEOUT_S) as answer:
        application = f"{_SPARKS_API}/{json.load(answer)[0]['id']}"
    paths = ("", "/executors", "/stages?status=active", "/jobs?status=running", "/environment")
    return Reads(urlsplit(ui).netloc, [application + path for path in paths])


class Readers:
    """Threads that together read `rate` times a second while the block lasts; their results accumulate.

    `took_ms` has the time of each answered read, `refused` counts the others (503).
    """

    def __init__(self, reads: Reads, rate: int) -> None:
        self._reads = reads
        self._rate = rate
        self._numbers = itertools.count()
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._errors: list[Exception] = []
        self.took_ms: list[float] = []
        self.refused = 0

    def __enter__(self) -> None:
        self._ended.clear()
        began = time.monotonic()
        numbers = itertools.count()
        self._threads = [
            threading.Thread(target=self._run, args=(began, numbers), daemon=True) for _ in range(_THREADS)
        ]
        for thread in self._threads:
            thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(_TIMEOUT_S)
        if self._errors:
            raise self._errors[0]

    def read(self, times: int) -> None:
        """Read `times` times at full speed; these reads are not counted."""
        connection = self._connect()
        for _ in range(times):
            self._read(connection)
        connection.close()

    def _run(self, began: float, numbers: itertools.count[int]) -> None:
        connection = self._connect()
        try:
            while not self._ended.wait(began + next(numbers) / self._rate - time.monotonic()):
                begin = time.perf_counter()
                if self._read(connection):
                    self.took_ms.append((time.perf_counter() - begin) * 1_000)
                else:
                    self.refused += 1
        except (OSError, http.client.HTTPException) as error:
            self._errors.append(error)
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._reads.host, timeout=_TIMEOUT_S)

    def _read(self, connection: http.client.HTTPConnection) -> bool:
        path = self._reads.paths[next(self._numbers) % len(self._reads.paths)]
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        return answer.status == 200
