"""How Flink's autoscaler aligns a parallelism with the partitions of what is read.

Source: apache/flink-kubernetes-operator, ``job.autoscaler.scaling.parallelism-alignment.mode``.
"""

from __future__ import annotations

from typing import Literal

Alignment = Literal["BALANCED", "EVENLY_SPREAD", "OFF"]


def align(
    mode: Alignment, current: int, wanted: int, *, partitions: int, most: int, upper: int = 2**31 - 1
) -> int:
    """Return the first parallelism from `wanted` on that suits the partitions, else `wanted`.

    Without `partitions` (0) the key groups count, `most`; `upper` is the largest that is allowed. One that
    is to shrink does not grow.
    """
    total = partitions or most
    cap = min(total, most, upper)
    if mode == "OFF" or wanted == current:
        return wanted
    for count in range(wanted, (cap if wanted > current else min(current, cap)) + 1):
        if total % count == 0 or (mode == "BALANCED" and total // count < total // wanted):
            return count
    return wanted
