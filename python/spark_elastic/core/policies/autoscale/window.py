"""When a query is scaled down, and how far: to the most that was wanted in the last window.

As Kubernetes' horizontal autoscaler (scale-down stabilization) and Flink's autoscaler (scale-down.interval)
do, so that a load that comes back finds its slots. Before something has been wanted for a whole window
nothing is scaled down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrs import frozen

from spark_elastic.core.policies.view import Wanted


@frozen(kw_only=True)
class Down:
    """Go down to `slots`; `until` (epoch ms) is when fewer may do, None: these are what is wanted now."""

    slots: int
    until: int | None = None


def most_wanted(wanted: Sequence[Wanted], slots: int, at: int, window_ms: int, current: int) -> Down:
    """Return the most that was wanted in the window before `at`, `slots` being wanted now.

    `current` is what is there: nothing is higher, and it is kept until the window is full.
    """
    within = [one for one in wanted if one.last > at - window_ms]
    began = wanted[0].at if wanted else at
    if window_ms > 0 and began > at - window_ms:
        return Down(slots=current, until=began + window_ms)
    most = min(current, max((one.slots for one in within), default=slots))
    if most <= slots:
        return Down(slots=slots)
    return Down(slots=most, until=max(one.last for one in within if one.slots >= most) + window_ms)


def one_step(current: int, target: int, most_down: float) -> int:
    """Limit a way down to the largest part of the slots that may go at once; at least one slot goes."""
    return max(target, min(current - 1, math.ceil(current * (1 - most_down) - 1e-9)))
