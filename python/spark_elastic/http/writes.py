"""Rules for every request that changes something: who may send it, its form, and how it is carried out."""

from __future__ import annotations

import ipaddress
import json
from typing import Any
from urllib.parse import urlsplit

import falcon

from spark_elastic.core.bounds.declared import Problem
from spark_elastic.core.keys.application import REST_ALLOWED_HOSTS, REST_READ_ONLY
from spark_elastic.http.errors import Refusal, unavailable
from spark_elastic.http.wsgi import REQUEST, HttpRequest
from spark_elastic.runtime.publisher import View
from spark_elastic.runtime.request_queue import Check, Late, NotJournaled, RequestQueue

# The loop answers within milliseconds unless it hangs; the client gets an answer before its own timeout.
_LOOP_S = 5.0
_MARGIN_S = 0.5


def may_write(request: falcon.Request, view: View) -> bool:
    """Return whether a write of this client would be permitted."""
    ours: HttpRequest = request.env[REQUEST]
    return ours.may_modify and not view.settings[REST_READ_ONLY]


def guard(request: falcon.Request, view: View, *, has_body: bool = True) -> None:
    """Let a write pass only if it is permitted, comes from our own page or a program, and is JSON.

    A request without a body has no content type. A page of another site cannot send it unasked, because
    browsers do not treat it as a simple request.
    """
    ours: HttpRequest = request.env[REQUEST]
    if view.settings[REST_READ_ONLY]:
        raise Refusal(403, f"this API only reads: {REST_READ_ONLY.full_name} is true")
    if not ours.may_modify:
        raise Refusal(
            403,
            f"{_user(ours)} may not change this application: that takes spark.ui.killEnabled and a place "
            "in spark.modify.acls",
        )
    _known_host(request, view)
    _same_origin(request)
    if not has_body:
        return
    content_type, _, _ = (request.content_type or "").partition(";")
    if content_type.strip().lower() != "application/json":
        raise Refusal(
            415,
            f"the Content-Type is '{content_type.strip()[:60]}', allowed is application/json: "
            "send Content-Type: application/json",
        )


def _known_host(request: falcon.Request, view: View) -> None:
    """Refuse a request for a host name that is not the UI's.

    A page may let its own name resolve to the driver's address (DNS rebinding). To its browser, the driver
    then has the same origin. An IP address cannot be redirected in this way.
    """
    ours: HttpRequest = request.env[REQUEST]
    known = {"localhost", *(_name(host) for host in ours.hosts), *view.settings[REST_ALLOWED_HOSTS]}
    for host in _asked_for(request):
        name = _name(host)
        if (not name or name not in known) and not _is_address(name):
            raise Refusal(
                403,
                f"'{host[:60]}' is not a name of this driver's UI: use one of {', '.join(sorted(known))}, or "
                f"if it is that of a proxy of yours, set {REST_ALLOWED_HOSTS.full_name}",
            )


def _asked_for(request: falcon.Request) -> set[str]:
    """Return the host that the driver was asked for, and that of each proxy in between that reports it."""
    hosts = {request.get_header("Host")}
    # A proxy reports the host it was asked for; Jetty's, used by Spark's master, does so in Forwarded.
    hosts |= {hop.host for hop in request.forwarded or ()}
    hosts |= {host.strip() for host in (request.get_header("X-Forwarded-Host") or "").split(",")}
    return {host.lower() for host in hosts if host}


def _name(host: str) -> str:
    """Return the name in a Host header or in a URL's authority, "" if there is none."""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _same_origin(request: falcon.Request) -> None:
    """Refuse a request that a page of another site makes a browser send."""
    ours: HttpRequest = request.env[REQUEST]
    site = request.get_header("Sec-Fetch-Site")
    if site is not None:
        if site in ("same-origin", "none"):
            return
        raise Refusal(403, f"a page of another origin may not change anything (Sec-Fetch-Site: {site[:60]})")
    origin = request.get_header("Origin")
    if origin is None:
        return  # not a browser
    hosts = _asked_for(request)
    # YARN's proxy does not report its host and drops Sec-Fetch-Site; its filter before the UI knows its URL.
    hosts |= {_host(proxy) for proxy in ours.proxies}
    if _host(origin) not in hosts:
        pages = " or ".join(f"{proxy}/elastic/" for proxy in ours.proxies)
        why = f"a page of another origin may not change anything (Origin: {origin[:60]})"
        raise Refusal(403, f"{why}: open the page at {pages}" if pages else why)


def _host(url: str) -> str:
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:
        return ""


def read_json(request: falcon.Request) -> Any:
    """Parse the body; an object that names a member twice is not accepted."""
    text = request.bounded_stream.read()
    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=_unique)
    except RecursionError:
        raise Refusal(400, "the body is nested too deep: send an object of vertices") from None
    except ValueError as error:
        # Python's message about a body in another encoding does not help a client.
        why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise Refusal(400, f"the body is no JSON, {why}: send an object") from None


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in members:
        if name in found:
            raise ValueError(f"'{name[:60]}' is there twice")
        found[name] = value
    return found


def carry_out(requests: RequestQueue, request: falcon.Request, check: Check) -> None:
    """Request the event of `check`; return when it is in the journal and the policy has handled it."""
    ours: HttpRequest = request.env[REQUEST]
    try:
        requests.ask(check, min(_LOOP_S, ours.left_ms / 1_000 - _MARGIN_S))
    except Late:
        raise unavailable("the policy is busy, and nothing was changed: try again") from None
    except NotJournaled:
        raise Refusal(
            500,
            "nothing was changed: the decision journal cannot be written, the driver's log says why: "
            "repair that and try again",
        ) from None


def asker(request: falcon.Request) -> str:
    """Return the name of the client, for the audit record."""
    return _user(request.env[REQUEST])


def _user(request: HttpRequest) -> str:
    return request.user or f"someone at {request.address}"


def refused(*problems: Problem) -> Refusal:
    """Return the refusal for a body with problems."""
    return Refusal(400, problems)
