"""Follow a journal while it is written."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from spark_elastic.runtime.entries import Entry, parse_lines

_POLL_S = 0.05


def follow(path: Path, stop: Callable[[], bool] = lambda: False) -> Iterator[Entry]:
    """Yield the entries of a journal from its beginning, and each further one soon after it was written.

    Waits for a file that is not there yet, continues in the next part when one begins, and ends once
    `stop` says so and all that is written has been read. A `Player` has the scheduler that the entries
    lead to. Raises Unreadable.
    """
    return (entry for _, entry in parse_lines(_tail(path, stop)))


def _tail(path: Path, stop: Callable[[], bool]) -> Iterator[tuple[str, str]]:
    """Yield complete lines with their place."""
    while True:
        # Asked before reading: what was written before the stop is still read.
        ends = stop()
        if path.exists():
            break
        if ends:
            return
        time.sleep(_POLL_S)
    file = path.open(encoding="utf-8", newline="\n")
    number, line = 0, ""
    try:
        while True:
            ends = stop()
            replaced = _replaced(path, file)
            while piece := file.readline():
                line += piece
                if line.endswith("\n"):
                    number += 1
                    yield f"{path}:{number}", line
                    line = ""
            if replaced:
                file.close()
                file = path.open(encoding="utf-8", newline="\n")
                number, line = 0, ""
            elif ends:
                return
            else:
                time.sleep(_POLL_S)
    finally:
        file.close()


def _replaced(path: Path, file: IO[str]) -> bool:
    """Tell whether `path` is another file by now; between two parts it is none for a moment."""
    try:
        return not os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
