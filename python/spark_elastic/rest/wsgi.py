"""Call a WSGI application with a request that did not come through a socket."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable
from typing import Any

from spark_elastic.rest.messages import HttpAnswer, HttpRequest

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

REQUEST = "spark_elastic.request"
"""The key under which the application finds the HttpRequest in its environment."""

# Where the servlet stands under Spark's UI.
SCRIPT_NAME = "/elastic"


def call(application: Application, request: HttpRequest) -> HttpAnswer:
    """Return the answer of `application`; raises what it raises."""
    began: list[Any] = []

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
        began[:] = [int(status.split(" ", 1)[0]), dict(headers)]

    parts = application(environment(request), start_response)
    body = b"".join(parts)
    status, headers = began
    # The servlet container counts for itself.
    headers.pop("content-length", None)
    return HttpAnswer(id=request.id, status=status, headers=headers, body=body.decode())


def environment(request: HttpRequest) -> dict[str, Any]:
    """Return what WSGI says an application is to be given."""
    path = request.path.removeprefix(SCRIPT_NAME)
    host, _, port = request.headers.get("Host", "localhost").rpartition(":")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": SCRIPT_NAME,
        # WSGI wants bytes in the shape of text.
        "PATH_INFO": path.encode("utf-8", "replace").decode("latin-1"),
        "QUERY_STRING": request.query,
        "CONTENT_LENGTH": str(len(request.body)),
        "REMOTE_ADDR": request.address,
        "SERVER_NAME": host or "localhost",
        "SERVER_PORT": port if port.isdigit() else "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(request.body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        REQUEST: request,
    }
    for name, value in request.headers.items():
        key = name.upper().replace("-", "_")
        environ[key if key == "CONTENT_TYPE" else f"HTTP_{key}"] = value
    if request.user is not None:
        environ["REMOTE_USER"] = request.user
    return environ
