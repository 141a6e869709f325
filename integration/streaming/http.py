"""A plain HTTP client, like any program's."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from attrs import frozen

TIMEOUT_S = 30.0


@frozen
class Reply:
    """An answer."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Client:
    """Asks the server at `url`, each time on a connection of its own.

    `root` is put before every path, `headers` are sent with every request; `tls` gives the certificates to
    trust for https.
    """

    def __init__(
        self,
        url: str,
        root: str = "",
        headers: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.host = urlsplit(url).netloc
        self._is_https = urlsplit(url).scheme == "https"
        self._root = root
        self._headers = headers or {}
        self._tls = tls

    def _connect(self) -> http.client.HTTPConnection:
        if self._is_https:
            return http.client.HTTPSConnection(self.host, timeout=TIMEOUT_S, context=self._tls)
        return http.client.HTTPConnection(self.host, timeout=TIMEOUT_S)

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        connection = self._connect()
        try:
            connection.request(method, self._root + path, body, {**self._headers, **(headers or {})})
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, found, answer.read().decode())
        finally:
            connection.close()

    def get(self, path: str) -> Reply:
        return self.request("GET", path)

    def put(self, path: str, body: object, **headers: str) -> Reply:
        """Send JSON; an underscore in a header name stands for a dash."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request("PUT", path, sent, {"Content-Type": "application/json", **named})

    def post(self, path: str, body: bytes = b"") -> Reply:
        return self.request("POST", path, body, {"Content-Type": "application/json"})
