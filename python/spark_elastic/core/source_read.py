"""What a micro-batch has read of a source."""

from __future__ import annotations

from attrs import frozen


@frozen(kw_only=True)
class SourceRead:
    """Count the rows that a micro-batch has read of a source, and its tasks, None if that is not known.

    `whole` says that more tasks were ordered than there were files, none of which can be split.
    """

    rows: int
    tasks: int | None = None
    whole: bool = False
