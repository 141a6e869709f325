"""Input for file sources: JSON files that appear at once and complete."""

from __future__ import annotations

import json
import os
from pathlib import Path

SCHEMA = "key int, value int"


class Inbox:
    """A folder with files of rows; row number i of all has key i % 7 and value i."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.rows = 0
        self.files = 0

    def put(self, files: int = 1, rows: int = 10) -> None:
        """Add files with this many rows each."""
        for _ in range(files):
            lines = [json.dumps({"key": i % 7, "value": i}) for i in range(self.rows, self.rows + rows)]
            hidden = self.folder / f".{self.files}.new"
            hidden.write_text("\n".join(lines) + "\n")
            os.replace(hidden, self.folder / f"{self.files:05d}.json")
            self.rows += rows
            self.files += 1

    def values(self) -> list[int]:
        """Return the values of all rows so far."""
        return list(range(self.rows))

    def totals(self) -> dict[int, tuple[int, int]]:
        """Return count and sum of the values of each key."""
        result: dict[int, tuple[int, int]] = {}
        for value in self.values():
            count, total = result.get(value % 7, (0, 0))
            result[value % 7] = (count + 1, total + value)
        return result
