"""Whether memory is missing: how much of the time of tasks goes into garbage collection and spill.

More executors give none of it back: each has as many tasks at once, and as much memory for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_low

from attrs import frozen

from spark_elastic.core.policies.view import Sample

_TOO_MUCH = 0.3
"""Three times what Spark's UI marks as too much garbage collection of a task."""
_ENOUGH, _LAST = 2, 3
"""A rate is known after two batches as well: what it is answered with is to be known by then."""
_DISK_BYTES_PER_MS = 125_000
"""What a disk of the cloud writes as sold by default (125 MB/s), so that spill can be told as time."""


@frozen(kw_only=True)
class Pressure:
    """The `share` of the time of tasks (above 0, up to 1) that is lost for want of memory.

    `gc_share` of it is garbage collection; a micro-batch spills `spilled_bytes`.
    """

    share: float
    gc_share: float
    spilled_bytes: int


def memory_pressure(samples: Sequence[Sample]) -> Pressure | None:
    """Find that the last micro-batches were short of memory, None if they were not, or it is not known."""
    works = [one.work for one in samples[-_LAST:] if one.work is not None and one.work.run_ms > 0]
    if len(works) < _ENOUGH:
        return None
    lost = [(work.gc_ms + work.spilled_bytes / _DISK_BYTES_PER_MS) / work.run_ms for work in works]
    share = min(1.0, median_low(lost))
    if share < _TOO_MUCH:
        return None
    return Pressure(
        share=share,
        gc_share=min(1.0, median_low(work.gc_ms / work.run_ms for work in works)),
        spilled_bytes=median_low(work.spilled_bytes for work in works),
    )
