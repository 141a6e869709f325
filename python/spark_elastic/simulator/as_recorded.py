"""What a run was like beside its load: what a simulation as set repeats, so that it goes as it went.

Policies other than the one that was set begin at once, on another cluster and by chance instead.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

from attrs import field, frozen

from spark_elastic.core import events as ev

Said = ev.PolicyFileChanged | ev.RequirementsRequested | ev.RequirementsDropped
"""What people say of bounds while queries run."""


@frozen(kw_only=True)
class AsRecorded:
    """What was so in a run, and who said what of bounds at which moment (ms since the begin).

    `spark` are Spark's own settings, `queries` are by the names that they have in the scenario.
    """

    said: tuple[tuple[int, Said], ...] = ()
    spark: Mapping[str, str] = field(factory=dict)
    queries: Mapping[str, RecordedQuery] = field(factory=dict)


@frozen(kw_only=True)
class RecordedQuery:
    """What one query was like, and its life: from when it was submitted to its end, None: it had none.

    From the order to start it took `start_ms` until it ran, None: not known. All moments are ms since the
    begin. `pace` is by how much its micro-batches were slower than their cost says, by when they began, the
    first one first. Its triggers are due `ahead_ms` before whole intervals.
    """

    facts: ev.QueryFacts
    begins: int = 0
    ends: int | None = None
    start_ms: int | None = None
    ahead_ms: int = 0
    pace: tuple[tuple[int, float], ...] = ()

    def factor(self, now: int) -> float:
        """Return by how much a micro-batch is slower that begins now: as the one that began next to that."""
        place = bisect_right(self.pace, now, key=lambda one: one[0])
        near = self.pace[max(0, place - 1) : place + 1]
        return min(near, key=lambda one: abs(one[0] - now))[1] if near else 1.0
