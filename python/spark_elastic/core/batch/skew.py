"""Which partitions of an exchange are far larger than the others. It is Spark that splits those of a join."""

from __future__ import annotations

from collections.abc import Sequence

_FACTOR = 4
_THRESHOLD = 256 << 20
"""Both have to be exceeded: so many times the median, and so many bytes."""


def median(sizes: Sequence[int]) -> int:
    """Return the median in whole bytes, at least 1. Raises IndexError if there are no sizes."""
    ordered = sorted(sizes)
    middle = len(ordered) // 2
    return max(1, ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) // 2)


def skewed(sizes: Sequence[int]) -> frozenset[int]:
    """Return the places of skewed partitions, by the bytes of each. Raises ValueError if there are none."""
    if max(sizes) <= _THRESHOLD:
        return frozenset()
    above = max(median(sizes) * _FACTOR, _THRESHOLD)
    return frozenset(place for place, size in enumerate(sizes) if size > above)
