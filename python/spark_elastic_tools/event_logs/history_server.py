"""Fetch event logs from a History Server, or from any other server of Spark's REST API."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import quote, urlsplit

from spark_elastic_tools.client import MOST_BYTES, opener, why_refused, why_silent
from spark_elastic_tools.event_logs.files import EventLog, LogError, Part, rolled_log

_TIMEOUT_S = 60.0
_SHOWN = 5
_API = "/api/v1/applications"
_PATH = re.compile(r"(?P<before>.*?)/(?:history|api/v1/applications)/(?P<id>[^/]+)(?:/.*)?")


@contextmanager
def fetched_logs(
    address: str, application: str | None, headers: Mapping[str, str]
) -> Iterator[list[EventLog]]:
    """Fetch the logs of an application into a temporary file and yield them, one for each attempt.

    `address` is the server's, or that of a page of the application. A server with a single application needs
    no `application`. Raises LogError.
    """
    server, named = _divided(address)
    chosen = application or named or _only(server, headers)
    with tempfile.TemporaryFile() as kept:
        url = f"{server}{_API}/{quote(chosen, safe='')}/logs"
        with _answer(url, headers, chosen) as answer:
            shutil.copyfileobj(answer, kept)
        try:
            archive = zipfile.ZipFile(kept)
        except zipfile.BadZipFile as error:
            raise LogError(f"{url} is no zip archive: is {server} a History Server of Spark?") from error
        with archive:
            yield _logs(archive, chosen)


def _divided(address: str) -> tuple[str, str | None]:
    """Return the server's address, and the application that the path names."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise LogError(f"{address} is no address: type one like http://localhost:18080")
    match = _PATH.fullmatch(parts.path)
    before = parts.path.rstrip("/") if match is None else match["before"]
    return f"{parts.scheme}://{parts.netloc}{before}", None if match is None else match["id"]


def _only(server: str, headers: Mapping[str, str]) -> str:
    url = f"{server}{_API}"
    with _answer(url, headers, None) as answer:
        try:
            found: list[dict[str, Any]] = json.loads(answer.read(MOST_BYTES))
            ids = [str(one["id"]) for one in found]
        except (ValueError, TypeError, KeyError) as error:
            raise LogError(f"{url} is no list of applications: is this a History Server of Spark?") from error
    if len(ids) == 1:
        return ids[0]
    if not ids:
        raise LogError(f"{server} has no application: look into its spark.history.fs.logDirectory")
    shown = ", ".join(ids[:_SHOWN]) + (", …" if len(ids) > _SHOWN else "")
    raise LogError(f"{server} has {len(ids)} applications ({shown}): type --app {ids[0]}")


@contextmanager
def _answer(url: str, headers: Mapping[str, str], application: str | None) -> Iterator[IO[bytes]]:
    request = urllib.request.Request(url, headers=dict(headers))
    try:
        with opener().open(request, timeout=_TIMEOUT_S) as answer:
            yield answer
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (401, 403):
            raise LogError(why_refused(url, error.code, error.reason, headers)) from error
        if error.code == 404 and application is not None:
            raise LogError(f"{url}: there is no application {application}: type another --app ID") from error
        raise LogError(f"{url} answers {error.code} {error.reason}: is this a History Server?") from error
    except (OSError, http.client.HTTPException) as error:
        raise LogError(f"{url} cannot be read ({why_silent(error)}): is a History Server there?") from error


def _logs(archive: zipfile.ZipFile, application: str) -> list[EventLog]:
    """Return the logs in an archive: files, and folders of rolled logs."""
    folders: dict[str, dict[str, Part]] = {}
    found = []
    for name in archive.namelist():
        if name.endswith("/"):
            continue
        path = PurePosixPath(name)
        part = Part(name, partial(archive.open, name))
        if len(path.parts) > 1:
            folders.setdefault(path.parts[-2], {})[path.name] = part
        else:
            found.append(EventLog(name=name, parts=(part,), unfinished=name.endswith(".inprogress")))
    found += [rolled_log(folder, files) for folder, files in folders.items()]
    if not found:
        raise LogError(f"the archive of {application} is empty: its log is gone from the History Server")
    return found


def is_address(place: str) -> bool:
    """Whether this is an address rather than a path."""
    return place.startswith(("http://", "https://")) and not Path(place).exists()
