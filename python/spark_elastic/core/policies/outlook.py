"""What a policy has found out about a query: what its decision is told with, and what can be looked at."""

from __future__ import annotations

from attrs import frozen

from spark_elastic.core.turn import Number


@frozen(kw_only=True)
class Outlook:
    """What one query needs slots for, with those that it has.

    So many `rows_per_second` come in. The last micro-batch took `batch_ms`; one takes `fixed_ms`, and
    `row_us` microseconds of one slot for each row, which can be trusted with a `confidence` from 0 to 1.
    Batches take the part `load` of their time (0 and up) and are to take `target_load` (above 0, up to 1). A
    change of its slots makes it stand still for `pause_ms`. Its sources have `behind` rows that it has not
    read, None if that is not known. `backlog` rows have piled up, None: none to speak of; they are to be gone
    within `within_ms`, and will be in `gone_in_ms`, None: with these slots they never are.
    """

    rows_per_second: float
    batch_ms: int
    fixed_ms: float
    row_us: float
    confidence: float
    load: float
    target_load: float
    pause_ms: float
    behind: int | None = None
    backlog: float | None = None
    within_ms: int | None = None
    gone_in_ms: float | None = None

    def numbers(self) -> dict[str, Number]:
        """Return what is known under the names that the sentences of policies have for it."""
        known: dict[str, Number | None] = {
            "rows_per_second": round(self.rows_per_second, 1),
            "batch_ms": self.batch_ms,
            "fixed_ms": round(self.fixed_ms, 1),
            "row_us": round(self.row_us, 3),
            "confidence": round(self.confidence, 2),
            "load_percent": round(100 * self.load),
            "target_percent": round(100 * self.target_load),
            "pause_ms": self.pause_ms,
            "behind": self.behind,
            "piled_up": None if self.backlog is None else round(self.backlog),
            "within_ms": self.within_ms,
            "gone_in_ms": None if self.gone_in_ms is None else round(self.gone_in_ms),
        }
        return {name: value for name, value in known.items() if value is not None}
