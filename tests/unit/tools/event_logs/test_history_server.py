"""Tests that logs are fetched from a server that answers as Spark's History Server does."""

from __future__ import annotations

import io
import json
import threading
import zipfile
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from spark_elastic_tools.event_logs.files import LogError
from spark_elastic_tools.event_logs.history_server import fetched_logs, is_address

EVENT = b'{"Event":"E1"}\n'


def archive(*names: str) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as zipped:
        for name in names:
            zipped.writestr(name, EVENT)
    return written.getvalue()


class Server(ThreadingHTTPServer):
    """Answers with the bodies of `bodies` by path, else 404."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: dict[str, bytes] = {}
        self.headers: list[Mapping[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.headers.append(dict(self.headers))
        body = self.server.bodies.get(self.path)
        self.send_response(404 if body is None else 200)
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def names(address: str, application: str | None = None, **headers: str) -> list[tuple[str, int]]:
    with fetched_logs(address, application, headers) as logs:
        return [(log.name, sum(1 for _ in log.events())) for log in logs]


API = "/api/v1/applications"


def test_the_only_application_needs_no_name(server: Server) -> None:
    server.bodies = {
        API: json.dumps([{"id": "app-1"}]).encode(),
        f"{API}/app-1/logs": archive("eventlog_v2_app-1/events_1_app-1", "eventlog_v2_app-1/events_2_app-1"),
    }
    assert names(server.url) == [("eventlog_v2_app-1", 2)]


def test_an_application_is_named_by_option_or_address_and_has_a_log_per_attempt(server: Server) -> None:
    server.bodies = {f"{API}/app-2/logs": archive("app-2_1", "app-2_2")}
    assert names(server.url, "app-2", Authorization="Bearer x") == [("app-2_1", 1), ("app-2_2", 1)]
    assert server.headers[-1]["Authorization"] == "Bearer x"
    assert len(names(f"{server.url}/history/app-2/jobs/")) == 2
    assert len(names(f"{server.url}{API}/app-2")) == 2


def test_several_applications_are_named(server: Server) -> None:
    server.bodies = {API: json.dumps([{"id": f"app-{number}"} for number in range(9)]).encode()}
    with pytest.raises(LogError, match=r"has 9 applications \(app-0, .*app-4, …\): type --app app-0"):
        names(server.url)


def test_what_a_server_lacks_is_named(server: Server) -> None:
    with pytest.raises(LogError, match=r"answers 404 .*: is this a History Server"):
        names(server.url)
    with pytest.raises(LogError, match="there is no application app-9: type another --app"):
        names(server.url, "app-9")
    server.bodies = {API: b"[]", f"{API}/a/logs": b"no zip", f"{API}/b/logs": archive()}
    with pytest.raises(LogError, match="has no application"):
        names(server.url)
    with pytest.raises(LogError, match="is no zip archive"):
        names(server.url, "a")
    with pytest.raises(LogError, match="the archive of b is empty"):
        names(server.url, "b")
    server.bodies = {API: b"<html>"}
    with pytest.raises(LogError, match="is no list of applications"):
        names(server.url)


def test_no_server_is_named() -> None:
    with pytest.raises(LogError, match=r"cannot be read .*: is a History Server there"):
        names("http://127.0.0.1:9")
    with pytest.raises(LogError, match="is no address"):
        names("http://")


def test_an_address_is_no_path() -> None:
    assert is_address("http://host:18080")
    assert not is_address("logs/app-1")
