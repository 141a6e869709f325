"""Where the journal of an application is.

Where somebody has said so; else beside local event logs, as they are kept for the same reason; else among the
temporary files, from where old ones are removed. Nobody has asked for these two: what cannot be written there
is no error, and they are in a folder of our own, for the driver's user alone. There is one for each user,
since event logs of several users often share a folder.
"""

from __future__ import annotations

import getpass
import os
import re
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

from attrs import frozen

from spark_elastic.core.events import Snapshot
from spark_elastic.core.keys import application
from spark_elastic.core.keys.key import is_on
from spark_elastic.settings import Settings

# Spark's own default for spark.eventLog.dir.
_SPARK_EVENT_LOGS = "/tmp/spark-events"


@frozen(kw_only=True)
class Place:
    """The file of a journal: `own` says that its folder is ours, `kept` that nothing leaves it."""

    path: Path
    own: bool
    kept: bool = True


def journal_place(settings: Settings, snapshot: Snapshot) -> Place | None:
    """Return where the journal of an application is, None if it has none."""
    wanted = settings[application.JOURNAL_DIR]
    name = journal_name(snapshot.application)
    if wanted is None:
        return None
    if wanted != application.JOURNAL_DIR.default:
        folder = _local(wanted)
        return None if folder is None else Place(path=folder / name, own=False)
    if is_on(snapshot.conf, "spark.eventLog.enabled"):
        logs = _local(snapshot.conf.get("spark.eventLog.dir", _SPARK_EVENT_LOGS))
        if logs is not None:
            # Not beside them: Spark's history server takes each file there for one of them.
            return Place(path=logs / _own_folder() / name, own=True)
    temporary = _temporary_folder(snapshot)
    if temporary is None:
        return None
    return Place(path=temporary / _own_folder() / name, own=True, kept=False)


def journal_name(application: str) -> str:
    """Return the file name of the journal of an application (its id)."""
    return f"spark-elastic-{_file_name(application)}.jsonl"


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", text)


def _own_folder() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may run as a user without a name
        user = str(os.geteuid())
    return f"spark-elastic-{_file_name(user)}"


def _temporary_folder(snapshot: Snapshot) -> Path | None:
    """Return where Spark keeps its own temporary files, as far as they are on this machine's disks."""
    folders = os.environ.get("SPARK_LOCAL_DIRS") or snapshot.conf.get("spark.local.dir", "")
    first = _local(folders.split(",")[0].strip())
    if first is not None and first.is_absolute():
        return first
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:  # none of the usual folders can be written to
        return None


def _local(place: str) -> Path | None:
    """Return the path of a plain path or a file: URI, None for any other file system."""
    uri = urlsplit(place)
    if not uri.scheme:
        return Path(place)
    return Path(unquote(uri.path)) if uri.scheme == "file" and uri.netloc in ("", "localhost") else None
