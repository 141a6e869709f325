"""Partitions that are far larger than the others: from which size on, and how they are split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from attrs import frozen

from spark_elastic.core.batch.spans import Span

JoinType = Literal[
    "inner", "cross", "left_outer", "right_outer", "full_outer", "left_semi", "left_anti", "other"
]
Side = Literal["left", "right"]

_SPLIT: dict[Side, frozenset[str]] = {
    "left": frozenset({"inner", "cross", "left_outer", "left_semi", "left_anti"}),
    "right": frozenset({"inner", "cross", "right_outer"}),
}


@frozen(kw_only=True)
class Skew:
    """Both have to be exceeded: so many times the median, and so many bytes."""

    factor: float = 4.0
    threshold: int = 256 << 20


def may_split(join: JoinType, side: Side) -> bool:
    """Say whether a side of a join may be split: only where it does no harm to read the other side twice."""
    return join in _SPLIT[side]


def median(sizes: Sequence[int]) -> int:
    """Return the median in whole bytes, at least 1."""
    ordered = sorted(sizes)
    middle = len(ordered) // 2
    if not ordered:
        return 1
    return max(1, ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) // 2)


def threshold(sizes: Sequence[int], skew: Skew) -> int:
    """Return the bytes above which a partition is skewed."""
    return int(max(median(sizes) * skew.factor, skew.threshold))


def target(sizes: Sequence[int], above: int, volume: int) -> int:
    """Return the bytes of a piece: the mean of what is not skewed, at least `volume`."""
    usual = [size for size in sizes if size <= above]
    return max(volume, sum(usual) // len(usual)) if usual else volume


def pieces(rows: Sequence[int], size: int) -> list[Span]:
    """Cut a partition between producers into pieces of less than `size` bytes, as far as those allow it."""
    starts = [0]
    held = 0
    for position, more in enumerate(rows):
        if position > starts[-1] and held + more >= size:
            starts.append(position)
            held = 0
        held += more
    return list(zip(starts, [*starts[1:], len(rows)], strict=True))
