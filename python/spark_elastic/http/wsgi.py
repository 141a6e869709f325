"""Call a WSGI application with a request that did not come through a socket."""

from __future__ import annotations

import base64
import binascii
import io
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from attrs import field, frozen
from cattrs.preconf.json import make_converter

# ---- HTTP requests and answers on their way from and to the driver: the counterpart of the shim's
# Contract.scala.


@frozen(kw_only=True)
class HttpRequest:
    """One request: `may_modify` is the result of Spark's ACLs, `left_ms` how long the client can wait.

    `path` is decoded; the servlet container refuses ambiguous ones. `user` is None if the UI does not
    authenticate its users. `hosts` are the host names of the driver's UI. `proxies` are the application's
    URLs behind YARN's proxy, which itself does not report the host it was asked for.
    """

    id: str
    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(factory=dict)
    body: bytes = b""
    user: str | None = None
    address: str = ""
    may_modify: bool
    hosts: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    left_ms: int


@frozen(kw_only=True)
class HttpAnswer:
    """The answer for the client; `id` is that of the request."""

    id: str
    status: int
    headers: Mapping[str, str] = field(factory=dict)
    body: str = ""


class NoRequest(ValueError):
    """An object is not a request; the text says why."""


_converter = make_converter()
_converter.register_structure_hook(bytes, lambda value, _: base64.b64decode(value, validate=True))


def decode_request(value: Mapping[str, Any]) -> HttpRequest:
    """Decode a request as the driver sends it. Raises NoRequest."""
    try:
        return _converter.structure(value, HttpRequest)
    except (Exception, binascii.Error) as error:
        raise NoRequest(f"{type(error).__name__}: {error}") from error


def encode_answer(answer: HttpAnswer) -> dict[str, Any]:
    """Encode an answer as a JSON-ready object."""
    value: dict[str, Any] = _converter.unstructure(answer)
    return value


Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

REQUEST = "spark_elastic.request"
"""The key of the HttpRequest in the application's WSGI environment."""

# The path of the servlet under Spark's UI.
SCRIPT_NAME = "/elastic"


def call(application: Application, request: HttpRequest) -> HttpAnswer:
    """Return the answer of `application`; raises what it raises."""
    began: list[Any] = []

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
        began[:] = [int(status.split(" ", 1)[0]), dict(headers)]

    parts = application(environment(request), start_response)
    body = b"".join(parts)
    status, headers = began
    # The servlet container sets the length itself.
    headers.pop("content-length", None)
    return HttpAnswer(id=request.id, status=status, headers=headers, body=body.decode())


def environment(request: HttpRequest) -> dict[str, Any]:
    """Return the environment that WSGI specifies for a request."""
    path = request.path.removeprefix(SCRIPT_NAME)
    host, _, port = request.headers.get("Host", "localhost").rpartition(":")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": SCRIPT_NAME,
        # WSGI expects bytes in the form of text.
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
