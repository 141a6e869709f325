"""What a rescale saves and what it costs: whether it pays."""

from __future__ import annotations

from attrs import frozen

MIN_GAIN = 0.05
"""The part of a batch's time that a rescale has to save: less is within the noise of a measurement."""


@frozen(kw_only=True)
class Gain:
    """What another count saves, over the time in which a rescale has to pay for itself.

    `before_ms` and `after_ms` are the durations of a batch, of which there are `batches` in
    `horizon_ms`; `cost_ms` is the pause of a rescale. `slots` and `min_increase` are for the record only.
    """

    slots: int
    before_ms: float
    after_ms: float
    batches: float
    horizon_ms: int
    cost_ms: int
    min_increase: int

    @property
    def saved_ms(self) -> float:
        """What a batch takes less, negative if it takes longer."""
        return self.before_ms - self.after_ms

    @property
    def saved_total_ms(self) -> float:
        """What is saved within the horizon."""
        return self.saved_ms * self.batches

    @property
    def net_ms(self) -> float:
        """What is left of that when the rescale is paid for, negative if it never is."""
        return self.saved_total_ms - self.cost_ms

    def shortfall(self) -> str | None:
        """Name what the gain lacks, None if the rescale pays."""
        if self.saved_ms < self.before_ms * MIN_GAIN:
            return "gain_too_small"
        if self.saved_total_ms <= self.cost_ms:
            return "cost_too_high"
        return None

    def numbers(self) -> dict[str, float | int | str]:
        """Return what the record of a decision says of it, rounded for reading."""
        return {
            "slots": self.slots,
            "before_ms": round(self.before_ms, 1),
            "after_ms": round(self.after_ms, 1),
            "saved_ms": round(self.saved_ms, 1),
            "batches": round(self.batches, 1),
            "saved_total_ms": round(self.saved_total_ms, 1),
            "horizon_ms": self.horizon_ms,
            "cost_ms": self.cost_ms,
            "min_gain_percent": round(MIN_GAIN * 100),
            "min_increase": self.min_increase,
        }
