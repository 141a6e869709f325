"""What a micro-batch has read of a source."""

from __future__ import annotations

from attrs import frozen


@frozen(kw_only=True)
class FullestPartition:
    """Name the partition of a source that had the most rows to be read when a micro-batch began.

    It had `rows` of `all_rows`, in so many `partitions`.
    """

    name: str
    rows: int
    all_rows: int
    partitions: int

    @property
    def share(self) -> float:
        """The share of the rows that it had, from 0 to 1."""
        return self.rows / self.all_rows if self.all_rows > 0 else 0.0


@frozen(kw_only=True)
class SourceRead:
    """Count the rows that a micro-batch has read of a source, and its tasks, None if that is not known.

    `whole` says that there could be no more tasks: each had a file, none of which can be split. `fullest` is
    None where the offsets of a source do not tell partitions apart.
    """

    rows: int
    tasks: int | None = None
    whole: bool = False
    fullest: FullestPartition | None = None
