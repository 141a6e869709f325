"""Find a driver's UI through the UI of a Standalone master."""

from __future__ import annotations

import html
import http.client
import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any
from urllib.parse import quote, urljoin

from spark_elastic.client.failures import NoDriver, NotAllowed
from spark_elastic.client.http import MOST_BYTES, body_of, opener, why_refused, why_silent, why_untrusted

_TIMEOUT_S = 10.0
# The master tells the address of an application's UI on its page alone, and its JSON has none of it.
_LINK = re.compile(r'<a[^>]*\bhref="([^"]+)"[^>]*>\s*Application Detail UI')


def ui_of(application: str, master_ui: str, headers: Mapping[str, str]) -> str:
    """Return the address of the UI of a running application by its id or name. Raises Failure."""
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
        raise NoDriver(
            f"what answers at {master_ui} is no Standalone master: name its UI with --master-ui"
        ) from None


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
        with opener().open(request, timeout=_TIMEOUT_S) as answer:
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
