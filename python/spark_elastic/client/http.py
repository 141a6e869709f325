"""What all clients share about HTTP: no redirects are followed, and plain words for what went wrong.

TLS certificates are those of the system or of SSL_CERT_FILE, proxies those of http_proxy and no_proxy.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MOST_BYTES = 64 << 20
# OpenSSL's numbers for a certificate that is somebody else's.
_OTHER_HOST = (62, 64)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Leaves a redirect an answer: to follow it could carry a login elsewhere, or lose what is sent."""

    def redirect_request(self, *_: Any) -> None:
        return None


def opener() -> urllib.request.OpenerDirector:
    """Return what asks."""
    return urllib.request.build_opener(_NoRedirects)


def body_of(error: urllib.error.HTTPError) -> dict[str, Any]:
    """Return the JSON object that came with an error, an empty one if there is none."""
    try:
        found = json.loads(error.read(MOST_BYTES))
    except (OSError, http.client.HTTPException, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def why_refused(url: str, code: int, why: str, sent: Mapping[str, str]) -> str:
    """Say what to type after a 401 or 403 of a filter before `url`, depending on the headers sent."""
    if not any(name.lower() == "authorization" for name in sent):
        return (
            f"{url} wants a login ({code} {why}): type --user NAME, or give a bearer token with "
            "--token-file FILE or in SPARK_ELASTIC_TOKEN"
        )
    return (
        f"{url} does not let this login in ({code} {why}): the user or the token is not known there, the "
        "token has expired, or spark.ui.view.acls has no place for the user: log in as somebody else with "
        "--user NAME, --token-file FILE or SPARK_ELASTIC_TOKEN"
    )


def why_silent(error: Exception) -> str:
    """Say in a few words why nobody answers."""
    reason = _reason(error)
    # Its words are the bytes that came, such as those of TLS.
    if type(reason) is http.client.BadStatusLine:
        return "what answers there is no HTTP: does the address begin with https://?"
    return getattr(reason, "strerror", None) or str(reason) or type(reason).__name__


def why_untrusted(url: str, error: Exception) -> str | None:
    """Say why there is no TLS with `url` and what to type, None if something else is the matter."""
    reason = _reason(error)
    if isinstance(reason, ssl.SSLCertVerificationError):
        found = f"the certificate of {url} is not trusted ({reason.verify_message.rstrip('.')})"
        if reason.verify_code in _OTHER_HOST:
            return f"{found}: name a host that it is for in the address"
        file = os.environ.get("SSL_CERT_FILE")
        if file is None:
            return f"{found}: set SSL_CERT_FILE to a file with the certificate of its CA (PEM)"
        # OpenSSL says nothing about a file that is not there.
        state = "has no certificate of its CA (PEM)" if Path(file).is_file() else "does not exist"
        return f"{found}: SSL_CERT_FILE is {file}, which {state}"
    if isinstance(reason, ssl.SSLError):
        return f"there is no TLS at {url} ({reason.reason or reason}): does it begin with http://?"
    return None


def _reason(error: Exception) -> object:
    return error.reason if isinstance(error, urllib.error.URLError) else error
