"""The folder that keeps what is downloaded, outside of any checkout or installation."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_dir() -> Path:
    """Return $SPARK_ELASTIC_CACHE, else spark-elastic in the user's cache folder."""
    chosen = os.environ.get("SPARK_ELASTIC_CACHE")
    if chosen:
        return Path(chosen).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "spark-elastic").absolute()


@contextmanager
def locked(name: str) -> Iterator[Path]:
    """Hold the cache's lock of that name (one process at a time) and give the cache's folder."""
    folder = cache_dir()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
