"""The log of Spark's file sink: an entry for each batch, and about every tenth one has all files so far.

Spark leaves out a batch that has an entry, and fails at one of the next entries with all files if one before
it is missing. So the log has to follow if a checkpoint gets a further batch, or goes back to an earlier one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

FOLDER = "_spark_metadata"
_ENTRY = re.compile(r"(\d+)(\.compact)?")


def unfit(names: Iterable[str], batch: int) -> str | None:
    """Return why a log with these files is not that of a query whose last batch is `batch`, else None."""
    found = _entries(names)
    if not found:
        return f"it has no folder {FOLDER} with entries, so no query with Spark's file sink writes to it"
    if max(found) > batch:
        return f"its log has batch {max(found)}, and the checkpoint ends with {batch}: it is of another query"
    return None


def cannot_end(names: Iterable[str], batch: int) -> str | None:
    """Return why the log cannot end with `batch` again, None if it can: all that it needs is there."""
    found = _entries(names)
    if not found:
        return unfit((), batch)
    before = {number: name for number, name in found.items() if number <= batch}
    complete = [number for number, name in before.items() if name.endswith(".compact")]
    missing = set(range(max(complete, default=0), batch + 1)) - set(before)
    if missing:
        return f"its log cannot go back to batch {batch}: it has no entry of {min(missing)}"
    return None


def later(names: Iterable[str], batch: int) -> list[str]:
    """Return the entries after a batch, the newest one first."""
    return [name for number, name in sorted(_entries(names).items(), reverse=True) if number > batch]


def _entries(names: Iterable[str]) -> Mapping[int, str]:
    return {int(found[1]): name for name in names if (found := _ENTRY.fullmatch(name)) is not None}
