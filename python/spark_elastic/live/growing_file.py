"""A file that another process adds lines to."""

from __future__ import annotations

from pathlib import Path


class GrowingFile:
    """Its lines, each once, so that whoever looks often takes no processor time from what is measured."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def new_lines(self) -> list[str]:
        """Return the lines since the last call; one that is being written is left for the next time."""
        if not self._path.is_file():
            return []
        with self._path.open("rb") as file:
            file.seek(self._read)
            whole, end, _ = file.read().rpartition(b"\n")
        self._read += len(whole + end)
        return whole.decode().split("\n") if end else []
