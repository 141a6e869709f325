"""The page without Spark: the policy of the unit tests, its real API over HTTP, an empty page for scripts.

It tests how much the page can show. A Spark with hundreds of running queries, each rescaled a thousand times,
would need hours for what the policy alone reaches in a minute.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from spark_elastic.http.wsgi import HttpRequest, call
from tests.unit.http.world import World

FILES = Path(__file__).parents[2] / "jvm-shim/src/main/resources/org/apache/spark/elastic/ui"
_TYPES = {".js": "text/javascript", ".css": "text/css"}
_PAGE = """<!DOCTYPE html><html><head><title>x</title><link rel="icon" href="data:,">
<link rel="stylesheet" href="static/elastic.css"><script type="module" src="static/main.js"></script></head>
<body><main id="elastic"></main></body></html>"""


class Site:
    """The address, and the number of requests to its API."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked = 0


@contextmanager
def serve(world: World) -> Iterator[Site]:
    """Serve the page of a policy on a port of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            if path == "/elastic/":
                self._send(200, "text/html", _PAGE.encode())
            elif path.startswith("/elastic/static/"):
                file = FILES / path.rpartition("/")[2]
                self._send(200, _TYPES[file.suffix], file.read_bytes())
            else:
                site.asked += 1
                request = HttpRequest(
                    id="h", method="GET", path=path, query=query, may_modify=True, left_ms=10_000
                )
                answer = call(world.application, request)
                self._send(answer.status, "application/json", answer.body.encode())

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing: pytest's output is for tests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site = Site(f"http://127.0.0.1:{server.server_address[1]}/elastic/")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
