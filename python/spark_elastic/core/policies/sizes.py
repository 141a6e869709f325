"""Sizes of micro-batches that count as the same."""

from __future__ import annotations

import math

_PER_DOUBLING = 2


def size_class(rows: float) -> int:
    """Return the number of a size: two to each doubling, so those of one number differ by 1.41 at most."""
    return math.floor(math.log2(max(1.0, rows)) * _PER_DOUBLING)
