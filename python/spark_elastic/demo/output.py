"""When did a query write? Read from the log that its file sink keeps, which no restart touches."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path


def commits(sink: Path) -> tuple[int, ...]:
    """Return the times (epoch ms, ascending) at which a Parquet sink committed its batches."""
    entries = [
        entry for entry in (sink / "_spark_metadata").glob("[0-9]*") if not entry.name.endswith(".tmp")
    ]
    return tuple(sorted(entry.stat().st_mtime_ns // 1_000_000 for entry in entries))


def longest_gap(times: Sequence[int], begin: int, end: int) -> int | None:
    """Return the longest time (ms) between two outputs that overlaps `begin` to `end`, None if no two do."""
    pairs = itertools.pairwise(times)
    return max((later - earlier for earlier, later in pairs if later > begin and earlier < end), default=None)
