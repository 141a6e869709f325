"""What the tasks of stages took: a part of what is told of one, and of a micro-batch."""

from __future__ import annotations

from attrs import frozen


@frozen(kw_only=True)
class StageWork:
    """What the tasks of a stage took: `run_ms` all of them together, `gc_ms` of it for garbage collection.

    `spilled_bytes` is what did not fit into memory and went to disk. The longest task ran for `longest_ms`,
    half of them for `median_ms` or less.
    """

    run_ms: int
    gc_ms: int
    spilled_bytes: int
    longest_ms: int
    median_ms: int

    def __add__(self, other: StageWork) -> StageWork:
        """Add up stages that ran one after the other."""
        return StageWork(
            run_ms=self.run_ms + other.run_ms,
            gc_ms=self.gc_ms + other.gc_ms,
            spilled_bytes=self.spilled_bytes + other.spilled_bytes,
            longest_ms=self.longest_ms + other.longest_ms,
            median_ms=self.median_ms + other.median_ms,
        )
