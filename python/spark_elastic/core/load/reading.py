"""How the sources of a query are read if its micro-batches have no shuffle.

Such a query has the parallelism of its sources: giving its shuffles another number of partitions changes
nothing. So its sources follow the slots, as far as they can be divided, and those that cannot are reported
once. They follow by order, because Spark leaves slots empty: it sizes splits by the cores that it had when
the micro-batch was planned, and counts 4 MiB for each file. Whether there is a shuffle is determined from the
stages that have run, and not from the plan: what `foreachBatch` does with a micro-batch is in no plan.
"""

from __future__ import annotations

from attrs import define, frozen

from spark_elastic.core.events import SourceFacts

BATCHES = 3
"""Micro-batches with rows and without a shuffle after which a query counts as one that has none.

Reports of stages take another path than those of micro-batches, and may be later.
"""

_BY_ORDER = (
    "more partitions of its topic would help; spark.elastic.source.divideOrdered=true would let several "
    "tasks share a partition, whose records may then be written in another order; so would its option "
    "minPartitions"
)
_BY_SHUFFLE = "a repartition() after it would give all slots something to do, at the price of a shuffle"


@define
class ShuffleWatch:
    """Whether micro-batches have a shuffle: `seen` says that one had, `batches` counts those without."""

    seen: bool = False
    batches: int = 0

    @property
    def has_none(self) -> bool:
        """Whether the query counts as one without a shuffle."""
        return not self.seen and self.batches >= BATCHES

    def stage_read_shuffle(self) -> None:
        """Note that a stage of a micro-batch has read a shuffle; it may do so again."""
        self.seen = True

    def committed(self, rows: int) -> bool:
        """Note a micro-batch; return whether this one shows that there is no shuffle."""
        known = self.has_none
        self.batches += rows > 0 and not known
        return self.has_none and not known


@frozen
class Reading:
    """How the `sources` of a query are read: in the `tasks` last ordered, None as Spark does.

    With `divide_ordered` several tasks may share a part that has an order.
    """

    sources: tuple[SourceFacts, ...]
    divide_ordered: bool
    tasks: int | None

    def follows(self, source: SourceFacts) -> bool:
        """Return whether a source can follow the slots."""
        return source.divisible and (not source.ordered or self.divide_ordered)

    @property
    def can_follow(self) -> bool:
        """Whether more slots can make a difference."""
        return any(map(self.follows, self.sources))

    def is_fixed(self, whole: bool) -> bool:
        """Return whether more slots add no task; `whole` says that its last batch could not be divided."""
        return whole or not self.can_follow

    @property
    def can_follow_in_part(self) -> bool:
        """Whether only some of the sources can follow the slots."""
        return self.can_follow and not all(map(self.follows, self.sources))

    @property
    def stuck(self) -> str:
        """The names of the sources that stay as they are, in words."""
        names = ", ".join(source.name for source in self.sources if not self.follows(source))
        return names or "none is known"

    @property
    def help(self) -> str:
        """The way to make one of those follow."""
        by_order = any(source.divisible and not self.follows(source) for source in self.sources)
        return _BY_ORDER if by_order else _BY_SHUFFLE
