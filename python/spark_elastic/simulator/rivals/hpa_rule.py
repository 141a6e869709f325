"""The rule of Kubernetes' HorizontalPodAutoscaler (autoscaling/v2) for one external metric.

As its documentation has it: replicas = metric / target of one replica, rounded up; nothing is done within a
tolerance of 0.1; of what was recommended within a window the least counts for going up and the most for going
down. Without a value nothing is done.
"""

from __future__ import annotations

import math
from collections import deque

from attrs import define, field

TOLERANCE = 0.1


@define(kw_only=True)
class Hpa:
    """An autoscaler; `target` is what one replica is for, the windows are seconds."""

    target: float
    least: int
    most: int
    up_s: float
    down_s: float
    # What was recommended, and when (seconds).
    _recommended: deque[tuple[float, int]] = field(factory=deque)

    def replicas(self, current: int, value: float | None, now: float) -> int:
        """Return how many there should be, with `current` there and the metric at `value`."""
        if value is None:
            return current
        wanted = current
        if current == 0 or abs(value / (self.target * current) - 1) > TOLERANCE:
            wanted = math.ceil(value / self.target)
        wanted = max(self.least, min(self.most, wanted))
        self._recommended.append((now, wanted))
        while self._recommended[0][0] < now - max(self.up_s, self.down_s):
            self._recommended.popleft()
        up = min(count for at, count in self._recommended if at >= now - self.up_s)
        down = max(count for at, count in self._recommended if at >= now - self.down_s)
        return min(max(current, up), down)
