"""How many slots the partitions of a query keep busy, and with how many slots they keep so many busy.

Tasks run in waves, of which the last one is not full. Where there are many, it is half full in the mean.
"""

from __future__ import annotations

_FEW = 2
_LAST = 0.5
_MOST = 1.5
"""No more than so many times the slots are taken to have partitions in fewer waves: other partitions help."""


def kept_busy(partitions: int, slots: int) -> float:
    """Return how many of the slots so many partitions keep busy, 1 at least."""
    if slots < 1:
        return 1.0
    count = max(1, partitions)
    whole = -(-count // slots)
    return max(1.0, count / (whole if whole <= _FEW else count / slots + _LAST))


def slots_that_keep_busy(partitions: int, wanted: float) -> float:
    """Return the slots of which so many are kept busy, for more than there are partitions as many."""
    if wanted >= partitions or wanted <= 1:
        return wanted
    waves = partitions / wanted
    if waves >= _FEW + _LAST:
        return partitions / (waves - _LAST)
    return min(partitions / min(_FEW, int(waves)), _MOST * wanted)
