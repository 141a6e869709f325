"""The partitions that a group has written, and how a row of them is cut into neighbouring ranges.

A range is at least one partition, however large that is. Ranges are told by where they start: each ends where
the next one starts, the last one with the last partition.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from operator import sub

from attrs import define, field


@define
class Partitions:
    """The bytes of each partition, at least one, those of all exchanges of a group added up."""

    sizes: Sequence[int]
    _sums: list[int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._sums = [0, *accumulate(self.sizes)]

    @property
    def total(self) -> int:
        """The bytes of all partitions."""
        return self._sums[-1]

    @property
    def largest(self) -> int:
        """The bytes of the largest partition: no limit below it can be kept."""
        return max(self.sizes)

    def count(self, limit: int, enough: int | None = None) -> int:
        """Count the ranges that a limit makes; what is above `enough` need not be counted to the end."""
        return len(self.cut(limit, enough))

    def cut(self, limit: int, enough: int | None = None) -> list[int]:
        """Cut from left to right into ranges of at most `limit` bytes, where partitions allow it.

        Returns the starts of the ranges, of one more than `enough` if there are so many.
        """
        sums, end = self._sums, len(self.sizes)
        room = end if enough is None else enough + 1
        starts: list[int] = []
        position = 0
        while position < end and len(starts) < room:
            starts.append(position)
            # From the partition after the next: the first one is taken in any case.
            position = bisect_right(sums, sums[position] + limit, position + 2, end + 1) - 1
        return starts

    def cut_evenly(self, tasks: int) -> list[int]:
        """Cut into `tasks` ranges of about as many partitions each, and return their starts.

        Raises ValueError unless each task can have a partition.
        """
        count = len(self.sizes)
        if not 1 <= tasks <= count:
            raise ValueError(f"{count} cannot be split between {tasks} tasks: at least 1 each is needed")
        return [task * count // tasks for task in range(tasks)]

    def sizes_of(self, starts: Sequence[int]) -> list[int]:
        """Return the bytes of each range."""
        edges = [self._sums[start] for start in starts]
        return list(map(sub, [*edges[1:], self.total], edges))

    def without_empty(self, starts: Sequence[int]) -> list[int]:
        """Join ranges without bytes to a neighbour, and return the starts that are left."""
        sizes = self.sizes_of(starts)
        if all(sizes):
            return list(starts)
        kept: list[int] = []
        last = 0
        for start, size in zip(starts, sizes, strict=True):
            if kept and not (size and last):
                last += size
            else:
                kept.append(start)
                last = size
        return kept
