"""What comes in, and what has piled up.

Rows per second are those that the source *had* more of, so far as it says how many it has (latest offsets):
what was read, and what the rows behind have grown by. What is only read says nothing of a source that is
read with a limit.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from spark_elastic.core.policies.view import Sample

_RECENT_MS = 30_000
_LEAST_BATCHES = 3


@frozen(kw_only=True)
class Inflow:
    """So many rows per ms come in.

    `behind` are those that wait in the sources, None if no source says it. `grows` says that there are more
    with each of the last batches, `limited` that the batches are as large as a limit of the source lets them
    be: then `batch_rows` is that size.
    """

    rows_per_ms: float
    behind: int | None = None
    grows: bool = False
    limited: bool = False
    batch_rows: float = 0.0

    @property
    def lag_ms(self) -> float | None:
        """How long the rows that wait took to come; None if that is not known."""
        if self.behind is None:
            return None
        return self.behind / self.rows_per_ms if self.rows_per_ms > 0 else (0.0 if self.behind == 0 else None)


def inflow(samples: Sequence[Sample]) -> Inflow | None:
    """Tell what comes in by the last micro-batches, None while that is not known.

    It is not known before there are two batches with a time between them.
    """
    recent = _recent(samples)
    gaps = [sample.gap_ms for sample in recent if sample.gap_ms is not None]
    if not recent or not gaps:
        return None
    timed = [sample for sample in recent if sample.gap_ms is not None]
    rows = sum(sample.input_rows for sample in timed)
    first = samples[samples.index(timed[0]) - 1] if timed[0] is not samples[0] else None
    last = timed[-1]
    if first is not None and first.behind is not None and last.behind is not None:
        rows += last.behind - first.behind
    waits = [sample.behind for sample in samples[-_LEAST_BATCHES:]]
    known = [behind for behind in waits if behind is not None]
    complete = len(known) == _LEAST_BATCHES
    return Inflow(
        rows_per_ms=max(0.0, rows / sum(gaps)),
        behind=last.behind,
        grows=complete and known[0] < known[1] < known[2],
        limited=len(known) >= 2 and min(known[-2:]) > 0,
        batch_rows=last.rows_per_batch,
    )


def _recent(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Return the batches of the last half minute, and at least three."""
    if not samples:
        return ()
    since = samples[-1].at - _RECENT_MS
    count = sum(sample.at > since for sample in samples)
    return samples[-max(count, _LEAST_BATCHES) :]
