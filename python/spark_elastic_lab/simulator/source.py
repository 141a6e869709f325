"""A source: rows that have come, rows that were read, and since when the oldest row waits."""

from __future__ import annotations

import math

from attrs import define, field, frozen
from attrs.validators import and_, ge, gt, le, optional

from spark_elastic.core.events import FullestPartition, OffsetsBehind
from spark_elastic_lab.simulator.load import Load


@frozen(kw_only=True)
class SourceSpec:
    """A source in `partitions` parts, of which the largest has the share `hot` of all rows, None: all alike.

    `backlog` rows are there at the begin. A micro-batch reads at most `most_rows`, None: all. Raises
    ValueError for what cannot be.
    """

    partitions: int = field(default=16, validator=ge(1))
    hot: float | None = field(default=None, validator=optional(and_(gt(0), le(1))))
    backlog: int = field(default=0, validator=ge(0))
    most_rows: int | None = field(default=None, validator=optional(ge(1)))

    @property
    def largest(self) -> float:
        """The share of the largest partition."""
        return max(self.hot or 0.0, 1 / self.partitions)


@define
class Source:
    """What one query reads; times are ms since the begin of the simulation.

    A policy can have a `limit` set for what a micro-batch reads (rows), 0: none.
    """

    spec: SourceSpec
    load: Load
    planned: int = field(default=0, init=False)
    """Rows that micro-batches have taken, whether they are through or not."""
    committed: int = field(default=0, init=False)
    limit: int = field(default=0, init=False)

    def available(self, now: int) -> int:
        """Count the rows that have come and that no micro-batch has taken."""
        return self.spec.backlog + int(self.load.arrived(now / 1_000)) - self.planned

    def take(self, now: int) -> int:
        """Let a micro-batch take what it may; return how many rows that is."""
        rows = self.available(now)
        most = self.spec.most_rows or self.limit
        if most:
            rows = min(rows, most)
        self.planned += rows
        return rows

    def commit(self) -> None:
        """Note that all that was taken is through."""
        self.committed = self.planned

    def uncommitted(self, now: int) -> int:
        """Count the rows that have come and are not through."""
        return self.available(now) + self.planned - self.committed

    @property
    def waits_since(self) -> float:
        """When the oldest row that is not through has come (ms), infinity if there will be none."""
        if self.committed < self.spec.backlog:
            return 0.0
        return self.next_row(self.committed)

    @property
    def next_unread(self) -> float:
        """When the next row that no micro-batch has taken comes, or has come (ms); infinity: never."""
        return 0.0 if self.planned < self.spec.backlog else self.next_row(self.planned)

    def next_row(self, rows: int) -> float:
        """Return when the row after so many comes (ms)."""
        when = self.load.when(rows - self.spec.backlog + 1)
        return when * 1_000 if when < math.inf else math.inf

    def behind(self, rows: int) -> OffsetsBehind:
        """Tell how so many unread rows lie in the partitions."""
        largest, others = self.spec.largest, self.spec.partitions - 1
        most = round(rows * largest)
        least = round(rows * (1 - largest) / others) if others else most
        return OffsetsBehind(avg=rows / self.spec.partitions, max=max(most, least), min=min(most, least))

    def fullest(self, rows: int) -> FullestPartition | None:
        """Tell how many of so many rows to be read the fullest partition had, None where all are alike."""
        if self.spec.hot is None or not rows:
            return None
        most = round(rows * self.spec.largest)
        return FullestPartition(name="0", rows=most, all_rows=rows, partitions=self.spec.partitions)
