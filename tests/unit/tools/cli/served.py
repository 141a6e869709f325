"""The policy of `tests.unit.http.world` behind a real HTTP server, in place of Spark's servlets."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from attrs import field, frozen
from click.testing import CliRunner, Result

from spark_elastic.http.wsgi import HttpRequest, call
from spark_elastic_tools.cli.main import cli
from tests.unit.http.world import World, world


@frozen
class Canned:
    """An answer that does not come from the API."""

    status: int
    body: str = "<html>no</html>"
    headers: Mapping[str, str] = field(factory=dict)


@frozen
class Served:
    """A driver, and the command line that asks it; `canned` maps path prefixes to answers."""

    url: str
    world: World
    canned: dict[str, Canned] = field(factory=dict)
    rights: dict[str, Any] = field(factory=lambda: {"may_modify": True})
    heard: list[Mapping[str, str]] = field(factory=list)

    def run(self, *arguments: str, **environment: str) -> Result:
        return run(arguments[0], "--url", self.url, *arguments[1:], **environment)


def run(*arguments: str, **environment: str) -> Result:
    """Call the command without this machine's environment."""
    clean = {f"SPARK_ELASTIC_{name}": None for name in ("URL", "MASTER_UI", "PASSWORD", "TOKEN")}
    clean["SSL_CERT_FILE"] = None
    return CliRunner().invoke(
        cli, arguments, prog_name="spark-elastic", env={**clean, "COLUMNS": None, **environment}
    )


@contextmanager
def served(conf: Mapping[str, str] | None = None, **more: Any) -> Iterator[Served]:
    """Serve a policy with two executors of two cores and a query, on a port that the system chooses."""
    with world(conf, **more) as running:
        server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        found = Served(f"http://127.0.0.1:{server.server_port}", running)
        server.served = found  # type: ignore[attr-defined]  # how a handler finds what it serves
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    def _serve(self) -> None:
        found: Served = self.server.served  # type: ignore[attr-defined]
        found.heard.append(dict(self.headers))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _, query = self.path.partition("?")
        for begin, canned in found.canned.items():
            if path.startswith(begin):
                self._send(canned.status, canned.headers, canned.body)
                return
        request = HttpRequest(
            id="h1", method=self.command, path=path, query=query, headers=dict(self.headers), body=body,
            address="127.0.0.1", left_ms=10_000, **found.rights,
        )  # fmt: skip
        answer = call(found.world.application, request)
        self._send(answer.status, answer.headers, answer.body)

    do_GET = do_PUT = do_POST = do_DELETE = _serve

    def _send(self, status: int, headers: Mapping[str, str], body: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        content = body.encode()
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""
