"""What has been tried: slots that did not do for a load are not gone back to while it is no less.

A line says what slots should do. Tasks come in whole waves, though, and other queries run beside: so a count
that the line recommends may fall short again and again. What was measured with it counts more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median

from spark_elastic.core.policies.view import Sample

_ENOUGH = 2
_ALIKE = 0.6
"""From so large a part of the rows on a batch tells what all of them would take."""


def tried(samples: Sequence[Sample], rows: float, fixed_ms: float) -> Mapping[int, float]:
    """Return, by the slots that were measured, what a batch of so many rows takes with them (ms).

    A batch of other rows tells it by its part beyond `fixed_ms`. It takes two of them, so that one that was
    slow tells nothing.
    """
    found: dict[int, list[float]] = defaultdict(list)
    least = _ALIKE * rows
    if rows > 0:
        for sample in samples:
            if sample.steady and sample.slots > 0 and sample.rows_per_batch >= least:
                grows = max(0.0, sample.duration_ms - fixed_ms)
                found[sample.slots].append(fixed_ms + grows * rows / sample.rows_per_batch)
    return {slots: median(took) for slots, took in found.items() if len(took) >= _ENOUGH}


def most_that_fell_short(took: Mapping[int, float], room_ms: float) -> int:
    """Return the most slots of which what was `tried` would not fit into the room, 0 for none."""
    return max((slots for slots, ms in took.items() if ms > room_ms), default=0)
