"""A source: the rows that have arrived, the rows that were read, and the age of the oldest row."""

from __future__ import annotations

import math

from attrs import define, field, frozen
from attrs.validators import and_, ge, gt, le, optional

from spark_elastic.core.events import FullestPartition, OffsetsBehind
from spark_elastic_lab.simulator.load import Load


@frozen(kw_only=True)
class SourceSpec:
    """A source with `partitions`; the largest has the share `hot` of all rows; if None, all are equal.

    It starts with `backlog` rows. A micro-batch reads at most `most_rows`, or all rows if that is None.
    Raises ValueError for invalid values.
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
    """The input of one query; times are ms since the start of the simulation.

    A policy can set a `limit` on the rows that a micro-batch reads; 0 means no limit.
    """

    spec: SourceSpec
    load: Load
    planned: int = field(default=0, init=False)
    """Rows that micro-batches have taken, whether committed or not."""
    committed: int = field(default=0, init=False)
    limit: int = field(default=0, init=False)

    def available(self, now: int) -> int:
        """Return the number of rows that have arrived and that no micro-batch has taken."""
        return self.spec.backlog + int(self.load.arrived(now / 1_000)) - self.planned

    def take(self, now: int) -> int:
        """Take rows for a micro-batch, up to its limit; return their number."""
        rows = self.available(now)
        most = self.spec.most_rows or self.limit
        if most:
            rows = min(rows, most)
        self.planned += rows
        return rows

    def commit(self) -> None:
        """Record that all taken rows are committed."""
        self.committed = self.planned

    def uncommitted(self, now: int) -> int:
        """Return the number of rows that have arrived and are not committed."""
        return self.available(now) + self.planned - self.committed

    @property
    def waits_since(self) -> float:
        """The arrival (ms) of the oldest uncommitted row, infinity if there will be none."""
        if self.committed < self.spec.backlog:
            return 0.0
        return self.next_row(self.committed)

    @property
    def next_unread(self) -> float:
        """The arrival (ms), past or future, of the next row not yet in a micro-batch; infinity: never."""
        return 0.0 if self.planned < self.spec.backlog else self.next_row(self.planned)

    def next_row(self, rows: int) -> float:
        """Return the arrival (ms) of the row after this number of rows."""
        when = self.load.when(rows - self.spec.backlog + 1)
        return when * 1_000 if when < math.inf else math.inf

    def behind(self, rows: int) -> OffsetsBehind:
        """Distribute unread rows over the partitions."""
        largest, others = self.spec.largest, self.spec.partitions - 1
        most = round(rows * largest)
        least = round(rows * (1 - largest) / others) if others else most
        return OffsetsBehind(avg=rows / self.spec.partitions, max=max(most, least), min=min(most, least))

    def fullest(self, rows: int) -> FullestPartition | None:
        """Return the fullest partition's part of the rows to read, or None if all partitions are equal."""
        if self.spec.hot is None or not rows:
            return None
        most = round(rows * self.spec.largest)
        return FullestPartition(name="0", rows=most, all_rows=rows, partitions=self.spec.partitions)
