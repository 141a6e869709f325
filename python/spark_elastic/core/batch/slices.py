"""Cutting a row of slices into neighbouring ranges, from left to right, none above a limit if that can be.

A slice is the least that a task can read, mostly one partition of a shuffle. A range is at least one slice,
however large that is. Where a side of a join is split, the other side's part goes with each piece: what
several slices of one range have in common counts once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from operator import sub

from attrs import define, field

from spark_elastic.core.batch.spans import spans_of

Part = tuple[int, int]
"""The number of a part, the same in all slices that have it; and its bytes."""


@define(kw_only=True)
class Slices:
    """A row of slices: the bytes of each, the parts of those that share some, where a range has to begin."""

    weights: Sequence[int]
    parts: Mapping[int, tuple[Part, ...]] = field(factory=dict)
    breaks: Sequence[int] = ()
    _sums: list[int] = field(init=False)
    _segments: list[tuple[int, int, bool]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._sums = [0, *accumulate(self.weights)]
        edges = sorted({0, *self.breaks})
        shared = sorted(self.parts)
        self._segments = []
        for start, end in spans_of(edges, len(self.weights)):
            at = bisect_right(shared, start - 1)
            self._segments.append((start, end, at < len(shared) and shared[at] < end))

    @property
    def total(self) -> int:
        """The bytes of all slices, each by itself."""
        return self._sums[-1]

    @property
    def heaviest(self) -> int:
        """The bytes of the largest slice: no range can do with less."""
        return max(self.weights, default=0)

    @property
    def segments(self) -> int:
        """The fewest ranges that there can be."""
        return len(self._segments)

    def count(self, limit: int, enough: int | None = None) -> int:
        """Count the ranges that a limit makes; what is above `enough` need not be counted to the end."""
        return len(self.cut(limit, enough))

    def cut(self, limit: int, enough: int | None = None) -> list[int]:
        """Cut into ranges of at most `limit` bytes where slices allow it; return their starts."""
        most = len(self.weights) if enough is None else enough
        starts: list[int] = []
        for start, end, shared in self._segments:
            if len(starts) > most:
                break
            if shared:
                self._walk(start, end, limit, starts, most)
            else:
                self._leap(start, end, limit, starts, most)
        return starts

    def _leap(self, position: int, end: int, limit: int, starts: list[int], most: int) -> None:
        sums = self._sums
        room = most + 1 - len(starts)
        while position < end and room > 0:
            starts.append(position)
            room -= 1
            # From the slice after the next: the first one is taken in any case.
            position = bisect_right(sums, sums[position] + limit, position + 2, end + 1) - 1

    def _walk(self, start: int, end: int, limit: int, starts: list[int], most: int) -> None:
        held: set[int] = set()
        size = 0
        for position in range(start, end):
            if len(starts) > most:
                break
            parts = self.parts.get(position, ())
            size += self._added(position, parts, held)
            if position == start or size > limit:
                starts.append(position)
                size = self.weights[position]
                held = {key for key, _ in parts}
            else:
                held.update([key for key, _ in parts])

    def _added(self, position: int, parts: Sequence[Part], held: set[int]) -> int:
        """Say how many bytes a slice adds to a range that holds some parts already."""
        if not parts:
            return self.weights[position]
        added = 0
        for key, size in parts:
            if key not in held:
                added += size
        return added

    def sizes(self, starts: Sequence[int]) -> list[int]:
        """Return the bytes of each range."""
        if not self.parts:
            edges = [self._sums[start] for start in starts]
            return list(map(sub, [*edges[1:], self.total], edges))
        return [self._size(start, end) for start, end in spans_of(starts, len(self.weights))]

    def _size(self, start: int, end: int) -> int:
        if self.parts.keys().isdisjoint(range(start, end)):
            return self._sums[end] - self._sums[start]
        held: set[int] = set()
        size = 0
        for position in range(start, end):
            parts = self.parts.get(position, ())
            size += self._added(position, parts, held)
            held.update([key for key, _ in parts])
        return size

    def without_empty(self, starts: Sequence[int]) -> list[int]:
        """Join ranges without bytes to a neighbour, unless a range has to begin between them."""
        sizes = self.sizes(starts)
        if all(sizes):
            return list(starts)
        kept: list[int] = []
        last = 0
        for start, size in zip(starts, sizes, strict=True):
            if kept and start not in self.breaks and not (size and last):
                last += size
            else:
                kept.append(start)
                last = size
        return kept
