"""HTTP requests and answers as they cross to the driver and back: the twin of the shim's Contract.scala."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen
from cattrs.preconf.json import make_converter

__all__ = ["HttpAnswer", "HttpRequest", "NoRequest", "decode_request", "encode_answer"]


@frozen(kw_only=True)
class HttpRequest:
    """One request: `may_modify` is what Spark's ACLs say, `left_ms` how long the client is kept waiting.

    `path` is decoded and without tricks, which the servlet container refuses; `user` is None where the UI
    asks nobody for a name. `hosts` are the names that the driver's UI has itself. `proxies` are the
    application's URLs behind YARN's proxy, which itself does not say which host it was asked for.
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
    """What the client is to get; `id` is that of the request."""

    id: str
    status: int
    headers: Mapping[str, str] = field(factory=dict)
    body: str = ""


class NoRequest(ValueError):
    """An object is no request; the text says why."""


_converter = make_converter()
_converter.register_structure_hook(bytes, lambda value, _: base64.b64decode(value, validate=True))


def decode_request(value: Mapping[str, Any]) -> HttpRequest:
    """Read a request as the driver sends it. Raises NoRequest."""
    try:
        return _converter.structure(value, HttpRequest)
    except (Exception, binascii.Error) as error:
        raise NoRequest(f"{type(error).__name__}: {error}") from error


def encode_answer(answer: HttpAnswer) -> dict[str, Any]:
    """Write an answer as a JSON-ready object."""
    value: dict[str, Any] = _converter.unstructure(answer)
    return value
