"""What happens to a query in the bench: a load in steps, and workers that come and go, at given seconds."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Literal

from attrs import field, frozen
from attrs.validators import deep_iterable, ge, gt, min_len

from spark_elastic_lab.simulator.load import Load

# A worker more when the load begins to rise, one less in its middle, and one in its place.
_CHANGES: tuple[tuple[float, Literal["join", "kill"]], ...] = ((0.3, "join"), (0.5, "kill"), (0.7, "join"))


@frozen
class Change:
    """A worker joins, or one with an executor is killed, `second` s after the load began."""

    second: int
    deed: Literal["join", "kill"]


@frozen(kw_only=True)
class Schedule:
    """A load of `rates` (events/s), each for `step_s` s, after `settle_s` s with the first of them.

    The time to settle is not measured. Raises ValueError without a rate, or for a number below its least.
    """

    rates: tuple[int, ...] = field(validator=(min_len(1), deep_iterable(ge(0))))
    step_s: int = field(validator=gt(0))
    settle_s: int = field(validator=ge(0))

    @property
    def load(self) -> Load:
        """The rate of each second."""
        steps = [rate for rate in self.rates for _ in range(self.step_s)]
        return Load([*[self.rates[0]] * self.settle_s, *steps])

    @property
    def arrived(self) -> list[int]:
        """The number of events that have arrived by the end of each second."""
        return [int(total) for total in accumulate(self.load.rates)]

    @property
    def measured(self) -> range:
        """The seconds that are measured."""
        return range(self.settle_s, self.settle_s + len(self.rates) * self.step_s)

    @property
    def steps(self) -> list[tuple[int, range]]:
        """Each rate (events/s) with its seconds."""
        begins = range(self.settle_s, self.measured.stop + 1, self.step_s)
        return [(rate, range(*span)) for rate, span in zip(self.rates, pairwise(begins), strict=True)]

    @property
    def changes(self) -> list[Change]:
        """What happens to the workers, in order."""
        return [Change(self.settle_s + round(part * len(self.measured)), deed) for part, deed in _CHANGES]
