"""The HTTP client for a driver."""

from __future__ import annotations

import base64
import html
import http.client
import json
import os
import re
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

from spark_elastic.version import __version__

# ---- The sources of the API's documents: a driver, or a journal.


Json = dict[str, Any]


class Source(Protocol):
    """Anything that answers like the API."""

    def get(self, path: str) -> Json:
        """Return the document at `path`, below ``/elastic/api/v1``. Raises Failure."""


# ---- HTTP code that all clients share: redirects are not followed, and errors get a readable explanation.
# TLS certificates are those of the system or of SSL_CERT_FILE, proxies those of http_proxy and no_proxy.
# `urllib` suffices for a few small requests, one at a time; a library would add sessions and four packages.


MOST_BYTES = 64 << 20
# OpenSSL's error codes for a certificate that was issued for another host.
_OTHER_HOST = (62, 64)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Treats a redirect as an answer: following it could send a login elsewhere or lose the body.

    Spark's UI redirects unknown paths, which is how a driver without the plugin is recognized.
    """

    def redirect_request(self, *_: Any) -> None:
        return None


def opener() -> urllib.request.OpenerDirector:
    """Return the opener for all requests."""
    return urllib.request.build_opener(_NoRedirects)


def body_of(error: urllib.error.HTTPError) -> dict[str, Any]:
    """Return the JSON object in an error's body, or an empty one if there is none."""
    try:
        found = json.loads(error.read(MOST_BYTES))
    except (OSError, http.client.HTTPException, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def why_refused(url: str, code: int, why: str, sent: Mapping[str, str]) -> str:
    """Explain a 401 or 403 from a filter in front of `url`, and what to type, given the headers sent."""
    if not any(name.lower() == "authorization" for name in sent):
        return (
            f"{url} requires a login ({code} {why}): type --user NAME, or give a bearer token with "
            "--token-file FILE or in SPARK_ELASTIC_TOKEN"
        )
    return (
        f"{url} rejects this login ({code} {why}): user or token unknown, token expired, or "
        "user not in spark.ui.view.acls: log in as another user with --user NAME, "
        "--token-file FILE or SPARK_ELASTIC_TOKEN"
    )


def why_silent(error: Exception) -> str:
    """Explain in a few words why there is no answer."""
    reason = _reason(error)
    # The error's text is the bytes received, which may be TLS records.
    if type(reason) is http.client.BadStatusLine:
        return "the answer is not HTTP: does the address start with https://?"
    return getattr(reason, "strerror", None) or str(reason) or type(reason).__name__


def why_untrusted(url: str, error: Exception) -> str | None:
    """Explain a TLS failure with `url` and what to type; return None if the error is not about TLS."""
    reason = _reason(error)
    if isinstance(reason, ssl.SSLCertVerificationError):
        found = f"the certificate of {url} is not trusted ({reason.verify_message.rstrip('.')})"
        if reason.verify_code in _OTHER_HOST:
            return f"{found}: name a host that it is for in the address"
        file = os.environ.get("SSL_CERT_FILE")
        if file is None:
            return f"{found}: set SSL_CERT_FILE to a file with the certificate of its CA (PEM)"
        # OpenSSL does not report a missing file.
        state = "has no certificate of its CA (PEM)" if Path(file).is_file() else "does not exist"
        return f"{found}: SSL_CERT_FILE is {file}, which {state}"
    if isinstance(reason, ssl.SSLError):
        return f"no TLS at {url} ({reason.reason or reason}): does the address start with http://?"
    return None


def _reason(error: Exception) -> object:
    return error.reason if isinstance(error, urllib.error.URLError) else error


# ---- The failures between a client and a driver; each text says what was found and what to type.


class Failure(Exception):
    """Something was not done; the text has one line for each error."""


class Refused(Failure):
    """The driver understood the request but refused it, or the request failed."""


class NoDriver(Failure):
    """Nothing answers, or what answers is not trusted, or is no driver with this version of spark-elastic."""


class NotAllowed(Failure):
    """The client lacks permission: the API is read-only, Spark's ACLs forbid it, or a login is required."""


class UnknownQuery(Failure):
    """No query, or more than one, has this name."""


class Busy(Failure):
    """The policy process is busy, starting, or temporarily gone."""


API = "/elastic/api/v1"
_SPARK_API = "/api/v1"
# The servlet answers within 10 s, regardless of the policy process.
_TIMEOUT_S = 20.0
_ADVICE = (
    "name the address of the application's Spark UI with --url http://HOST:4040 or in SPARK_ELASTIC_URL, or "
    "the application with --app ID --master-ui http://MASTER:8080"
)


class Driver:
    """The REST API of the driver whose Spark UI is at `url`; `headers` are sent with every request."""

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
        """Replace the document at `path` if its ETag is still `if_match`. Raises Failure."""
        return self._ask("PUT", path, body, {"If-Match": if_match})[0]

    def delete(self, path: str) -> Json:
        """Remove the document at `path`. Raises Failure."""
        return self._ask("DELETE", path)[0]

    def order(self, path: str, body: Json) -> Json:
        """Request an action, with the one method that YARN's proxy lets through. Raises Failure."""
        return self._ask("PUT", path, body)[0]

    def spark_settings(self, application: str) -> dict[str, str]:
        """Return an application's settings (by its id), without secrets, from Spark's API. Raises Failure."""
        path = f"/applications/{quote(application)}/environment"
        return dict(self._ask("GET", path, api=_SPARK_API)[0].get("sparkProperties", ()))

    def _ask(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        headers: Mapping[str, str] | None = None,
        api: str = API,
    ) -> tuple[Json, http.client.HTTPMessage]:
        sent = {**self._headers, **(headers or {})}
        if body is not None:
            sent["Content-Type"] = "application/json"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + api + path, data, sent, method=method)
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
            raise NoDriver(f"{self.url} is not a driver with spark-elastic: {_ADVICE}")
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
                # For an error from a filter, Jetty's message holds the filter's explanation.
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
                if to == f"{self.url}/jobs/":  # where Spark's UI redirects every unknown path
                    return self._without_plugin()
                ui, ours, _ = to.partition(API)
                typed = f"type --url {tidy_url(ui)}" if ours else "name that address with --url, or log in"
                return NoDriver(f"{self.url} redirects to {to}: {typed}")
            case 502 | 504:
                return NoDriver(f"{words}: is the application still running?")
        return Refused(words)


def _errors(body: Json) -> list[str] | None:
    """Return the messages in an answer of the API, or None if the answer is not from the API."""
    found = body.get("errors")
    return [str(sentence) for sentence in found] if isinstance(found, list) and found else None


def basic_login(user: str, password: str) -> dict[str, str]:
    """Return the header of a basic login."""
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def bearer_login(token: str) -> dict[str, str]:
    """Return the header of a token login. Raises ValueError, without the token, if it is malformed."""
    token = token.strip()
    if not re.fullmatch(r"[\w.~+/-]+=*", token, re.ASCII):
        raise ValueError("no bearer token: give the token alone, without the word Bearer")
    return {"Authorization": f"Bearer {token}"}


def tidy_url(url: str) -> str:
    """Return the address of a Spark UI as typed or copied by a user, without a page's path below it.

    Raises ValueError if it is not an address.
    """
    text = url.strip()
    parts = urlsplit(text if "://" in text else f"http://{text}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(
            f"'{url}' is not the address of a Spark UI: type, for example, http://localhost:4040"
        )
    if parts.username is not None:
        raise ValueError("do not put a login into the address: leave it out and type --user NAME")
    _ = parts.port  # raises ValueError if the port is not a number
    path = re.sub(r"/elastic(/.*)?$", "", parts.path).rstrip("/")
    # A driver on YARN redirects direct requests there; on the proxy's own machine, that gives an error page.
    path = re.sub(r"/proxy/redirect/(?=application_)", "/proxy/", path)
    for page in ("/jobs", "/stages", "/executors", "/StreamingQuery"):
        path = path.removesuffix(page)
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


# ---- Find a query by what the user typed.


_ENDED = "Finished"


def title(query: Json) -> str:
    """Return a query's name, or the start of its id if it has none."""
    return str(query["name"] or query["id"][:8])


def find_at(source: Source, wanted: str) -> Json:
    """Return the query that `find` selects. Raises UnknownQuery and the errors of `source`."""
    return find(source.get("/queries")["queries"], wanted)


def find(queries: Sequence[Json], wanted: str) -> Json:
    """Return the query with this name or id (dashes are optional), or the only one that starts like this.

    A running query takes precedence over ended queries of the same name. Raises UnknownQuery.
    """
    for found in (_named(queries, wanted), _begins(queries, wanted)):
        living = [query for query in found if query["state"] != _ENDED]
        chosen = living or found[:1]
        if len(chosen) == 1:
            return chosen[0]
        if chosen:
            listed = ", ".join(f"{query['id']} ({title(query)})" for query in chosen)
            raise UnknownQuery(f"'{wanted}' can be any of {len(chosen)} queries: name one of {listed}")
    raise UnknownQuery(_unknown(queries, wanted))


def _named(queries: Sequence[Json], wanted: str) -> list[Json]:
    exact = [query for query in queries if _bare(query["id"]) == _bare(wanted)]
    return exact or [query for query in queries if query["name"] == wanted]


def _begins(queries: Sequence[Json], wanted: str) -> list[Json]:
    begin, lower = _bare(wanted), wanted.lower()
    return [
        query
        for query in queries
        if (begin and _bare(query["id"]).startswith(begin))
        or (lower and (query["name"] or "").lower().startswith(lower))
    ]


def _bare(id: str) -> str:
    return id.replace("-", "").lower()


def _unknown(queries: Sequence[Json], wanted: str) -> str:
    if not queries:
        return f"no query is called '{wanted}': the application has no streaming query"
    names = list(dict.fromkeys(title(query) for query in queries))
    near = get_close_matches(wanted, names, 1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'? " if near else ""
    return f"no query is called '{wanted}': {hint}there are {', '.join(names)}"


# ---- Find a driver's UI through the UI of a Standalone master.


_MASTER_TIMEOUT_S = 10.0
# The master shows the address of an application's UI only on its HTML page, not in its JSON.
_LINK = re.compile(r'<a[^>]*\bhref="([^"]+)"[^>]*>\s*Application Detail UI')


def ui_of(application: str, master_ui: str, headers: Mapping[str, str]) -> str:
    """Return the UI's address of a running application, given its id or name. Raises Failure."""
    running = _running(master_ui, headers)
    named = [app for app in running if application in (app["id"], app["name"])]
    if len(named) != 1:
        raise NoDriver(_which(application, master_ui, running, len(named)))
    page = _get(f"{master_ui}/app/?appId={quote(named[0]['id'], safe='')}", headers)
    link = _LINK.search(page)
    if link is None:
        raise NoDriver(
            f"application {named[0]['id']} has no UI (spark.ui.enabled is false), or its page on "
            f"{master_ui} cannot be read: name the address with --url"
        )
    return urljoin(master_ui + "/", html.unescape(link[1])).rstrip("/")


def _running(master_ui: str, headers: Mapping[str, str]) -> list[dict[str, Any]]:
    try:
        known = json.loads(_get(f"{master_ui}/json/", headers))["activeapps"]
        return [{"id": str(app["id"]), "name": str(app["name"])} for app in known]
    except (ValueError, TypeError, KeyError):
        raise NoDriver(f"{master_ui} is not a Standalone master: name its UI with --master-ui") from None


def _which(application: str, master_ui: str, running: list[dict[str, Any]], found: int) -> str:
    listed = ", ".join(f"{app['id']} ({app['name']})" for app in running) or "none"
    if found:
        return f"{found} applications are called '{application}': name the id; running are {listed}"
    names = [name for app in running for name in (app["id"], app["name"])]
    near = get_close_matches(application, names, 1)
    hint = f"did you mean '{near[0]}'? " if near else ""
    return f"no application '{application}' runs on {master_ui}: {hint}running are {listed}"


def _get(url: str, headers: Mapping[str, str]) -> str:
    try:
        request = urllib.request.Request(url, headers=dict(headers))
        with opener().open(request, timeout=_MASTER_TIMEOUT_S) as answer:
            return str(answer.read(MOST_BYTES).decode("utf-8", "replace"))
    except urllib.error.HTTPError as error:
        with error:
            if error.code in (401, 403):
                why = str(body_of(error).get("message") or error.reason)
                raise NotAllowed(why_refused(url, error.code, why, headers)) from None
            to = error.headers.get("Location")
            redirects = f", a redirect to {urljoin(url, to)}" if to else ""
            raise NoDriver(
                f"{url} answers {error.code} {error.reason}{redirects}: name the master's UI with --master-ui"
            ) from None
    except (OSError, http.client.HTTPException) as error:
        at = url.partition("/json")[0]
        raise NoDriver(
            why_untrusted(at, error)
            or f"no master's UI at {at} ({why_silent(error)}): name it with --master-ui, or the "
            "application's UI with --url"
        ) from None
