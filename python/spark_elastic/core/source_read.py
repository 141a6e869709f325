"""What a micro-batch has read of a source."""

from __future__ import annotations

from attrs import frozen


@frozen(kw_only=True)
class SourceRead:
    """Count the rows that a micro-batch has read of a source, and its tasks, None if that is not known.

    `whole` says that there could be no more tasks: each had a file, none of which can be split.
    """

    rows: int
    tasks: int | None = None
    whole: bool = False
