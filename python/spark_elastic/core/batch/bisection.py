"""Bisection over whole numbers, for conditions that hold from some number on, or up to one."""

from __future__ import annotations

from collections.abc import Callable


def least(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """Find the least number of `low` to `high`, both included, from which on it `holds`; None: never."""
    if low > high or not holds(high):
        return None
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return high


def greatest(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """Find the greatest number of `low` to `high`, both included, up to which it `holds`; None: never."""
    if low > high or not holds(low):
        return None
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low
