"""What the tests measure: how long an output pauses, and how long it takes until all is well again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from attrs import define, field

from integration.kubernetes.application import IN_FORCE_S, Data
from integration.streaming.waiting import eventually


@define
class Figures:
    """Rows of figures, in seconds, one for each event."""

    rows: list[dict[str, str | float]] = field(factory=list)

    @contextmanager
    def of(self, event: str, data: Data) -> Iterator[None]:
        """Measure from the block's begin to the first output after it: the event, and until all is well."""
        begun = time.time()
        yield
        ended = time.time()
        eventually(lambda: data.written()[-1] > ended, "the query goes on", IN_FORCE_S, every_s=0.2)
        took = next(at for at in data.written() if at > ended) - begun
        gap = data.longest_gap_since(begun)
        self.rows.append(
            {"event": event, "longest gap of output": round(gap, 1), "well after": round(took, 1)}
        )

    def lines(self) -> Iterator[str]:
        """Yield a line for each event."""
        for row in self.rows:
            gap, well = row["longest gap of output"], row["well after"]
            yield f"{row['event']}: no output for {gap} s, well after {well} s"
