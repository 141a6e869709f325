"""Spans of indexes, from a start up to but not including an end, and what a task reads in terms of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

Span = tuple[int, int]
"""Start and end of neighbouring indexes; the end is not part of it."""


class Block(NamedTuple):
    """Some subpartitions of some partitions of one input."""

    partitions: Span
    subpartitions: Span


def merge(spans: Iterable[Span]) -> list[Span]:
    """Join spans that overlap or touch, in ascending order."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def clip(span: Span, count: int) -> Span:
    """Leave what a span has within the first `count` indexes. Raises ValueError if that is nothing."""
    start, end = span
    if start >= count:
        raise ValueError(f"{start} to {end} is beyond the {count} that there are")
    return start, min(end, count)


def spans_of(starts: Sequence[int], end: int) -> list[Span]:
    """Make spans of the indexes at which they start, the last one up to `end`."""
    return list(zip(starts, [*starts[1:], end], strict=True))


def gather(cells: Iterable[tuple[Span, Span]]) -> list[tuple[Span, Span]]:
    """Join cells of two axes into blocks: along the second axis, then neighbours that are alike in it."""
    rows: dict[Span, list[Span]] = {}
    for first, second in cells:
        rows.setdefault(first, []).append(second)
    blocks: list[tuple[Span, list[Span]]] = []
    for first, seconds in sorted(rows.items()):
        merged = merge(seconds)
        if blocks and blocks[-1][0][1] == first[0] and blocks[-1][1] == merged:
            blocks[-1] = ((blocks[-1][0][0], first[1]), merged)
        else:
            blocks.append((first, merged))
    return [(first, second) for first, merged in blocks for second in merged]
