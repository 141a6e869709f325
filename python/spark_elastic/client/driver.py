"""Ask a driver over HTTP."""

from __future__ import annotations

import base64
import http.client
import json
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Mapping
from urllib.parse import urljoin, urlsplit, urlunsplit

from spark_elastic import __version__
from spark_elastic.client.failures import Busy, Failure, NoDriver, NotAllowed, Refused, UnknownQuery
from spark_elastic.client.http import MOST_BYTES, body_of, opener, why_refused, why_silent, why_untrusted
from spark_elastic.client.source import Json

API = "/elastic/api/v1"
# The servlet answers within 10 s, whatever the policy does.
_TIMEOUT_S = 20.0
_ADVICE = (
    "name the address of the application's Spark UI with --url http://HOST:4040 or in SPARK_ELASTIC_URL, or "
    "the application with --app ID --master-ui http://MASTER:8080"
)


class Driver:
    """The REST API of the driver whose Spark UI is at `url`; `headers` go with every request."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None, timeout_s: float = _TIMEOUT_S):
        self.url = url
        self._headers = {"Accept": "application/json", **(headers or {})}
        self._timeout_s = timeout_s
        self._opener = opener()

    def get(self, path: str) -> Json:
        """Return the document at `path`. Raises Failure."""
        return self._ask("GET", path)[0]

    def get_tagged(self, path: str) -> tuple[Json, str]:
        """Return the document at `path` and its ETag. Raises Failure."""
        found, headers = self._ask("GET", path)
        return found, headers.get("ETag", "*")

    def put(self, path: str, body: Json, if_match: str) -> Json:
        """Replace the document at `path` if it is still the one with the ETag `if_match`. Raises Failure."""
        return self._ask("PUT", path, body, {"If-Match": if_match})[0]

    def delete(self, path: str) -> Json:
        """Remove the document at `path`. Raises Failure."""
        return self._ask("DELETE", path)[0]

    def order(self, path: str, body: Json) -> Json:
        """Ask for something, by the method that passes YARN's proxy. Raises Failure."""
        return self._ask("PUT", path, body)[0]

    def _ask(
        self, method: str, path: str, body: Json | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[Json, http.client.HTTPMessage]:
        sent = {**self._headers, **(headers or {})}
        if body is not None:
            sent["Content-Type"] = "application/json"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + API + path, data, sent, method=method)
        try:
            with self._opener.open(request, timeout=self._timeout_s) as answer:
                text = answer.read(MOST_BYTES)
                return self._read(text), answer.headers
        except urllib.error.HTTPError as error:
            with error:
                raise self._failure(path, error) from None
        except (OSError, http.client.HTTPException) as error:
            raise self._nobody(error) from None

    def _read(self, text: bytes) -> Json:
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise NoDriver(f"what answers at {self.url} is no driver with spark-elastic: {_ADVICE}")
        return value

    def _nobody(self, error: Exception) -> NoDriver:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, TimeoutError):
            return NoDriver(
                f"{self.url} does not answer within {self._timeout_s:g} s: try again, or {_ADVICE}"
            )
        if isinstance(reason, socket.gaierror):
            return NoDriver(f"no host is called {urlsplit(self.url).hostname} ({self.url}): {_ADVICE}")
        untrusted = why_untrusted(self.url, error)
        return NoDriver(untrusted or f"no driver at {self.url} ({why_silent(error)}): {_ADVICE}")

    def _without_plugin(self) -> NoDriver:
        return NoDriver(
            f"{self.url} answers, but has no {API}: the application runs without the plugin of spark-elastic "
            "(spark-elastic conf prints its settings), spark.elastic.rest.enabled is false, or it is no "
            f"driver's UI: {_ADVICE}"
        )

    def _failure(self, path: str, error: urllib.error.HTTPError) -> Failure:
        body = body_of(error)
        said = _errors(body)
        words = "\n".join(said) if said is not None else f"{self.url} answers {error.code} {error.reason}"
        match error.code:
            case 401 | 403 if said is None:
                # Jetty says there what a filter has to say.
                why = str(body.get("message") or error.reason)
                return NotAllowed(why_refused(self.url, error.code, why, self._headers))
            case 401 | 403:
                return NotAllowed(words)
            case 407:
                return NotAllowed(f"{words}: the proxy of http_proxy wants a login")
            case 404 if said is None:
                return self._without_plugin()
            case 404 if path.startswith(("/queries/", "/jobs/")):
                return UnknownQuery(words)
            case 404:
                return NoDriver(
                    f"{words}: this is spark-elastic {__version__}, the driver may have an older version"
                )
            case 503:
                return Busy(words)
            case code if 300 <= code < 400:
                to = urljoin(self.url + API + path, error.headers.get("Location", ""))
                if to == f"{self.url}/jobs/":  # where Spark's UI sends everything that it does not know
                    return self._without_plugin()
                ui, ours, _ = to.partition(API)
                typed = f"type --url {tidy_url(ui)}" if ours else "name that address with --url, or log in"
                return NoDriver(f"{self.url} redirects to {to}: {typed}")
            case 502 | 504:
                return NoDriver(f"{words}: is the application still running?")
        return Refused(words)


def _errors(body: Json) -> list[str] | None:
    """Return the sentences of an answer of the API, None if it is somebody else's."""
    found = body.get("errors")
    return [str(sentence) for sentence in found] if isinstance(found, list) and found else None


def basic_login(user: str, password: str) -> dict[str, str]:
    """Return the header of a basic login."""
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def bearer_login(token: str) -> dict[str, str]:
    """Return the header of a login with a token. Raises ValueError, which does not show it, if it is none."""
    token = token.strip()
    if not re.fullmatch(r"[\w.~+/-]+=*", token, re.ASCII):
        raise ValueError("no bearer token: give the token alone, without the word Bearer")
    return {"Authorization": f"Bearer {token}"}


def tidy_url(url: str) -> str:
    """Return the address of a Spark UI as somebody types or copies it, without what stands below it.

    Raises ValueError if it is no address.
    """
    text = url.strip()
    parts = urlsplit(text if "://" in text else f"http://{text}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"'{url}' is no address of a Spark UI: type one such as http://localhost:4040")
    if parts.username is not None:
        raise ValueError("a login does not belong into the address: leave it out and type --user NAME")
    _ = parts.port  # raises ValueError if it is no number
    path = re.sub(r"/elastic(/.*)?$", "", parts.path).rstrip("/")
    # Who asks a driver on YARN itself is sent there; on the proxy's own machine that ends in an error page.
    path = re.sub(r"/proxy/redirect/(?=application_)", "/proxy/", path)
    for page in ("/jobs", "/stages", "/executors", "/StreamingQuery"):
        path = path.removesuffix(page)
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))
