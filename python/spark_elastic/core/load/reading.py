"""How the sources of a query are read whose micro-batches have no shuffle.

Such a query has the parallelism of its sources: to give its shuffles another number of partitions changes
nothing. So its sources follow the slots, as far as they can be divided, and what cannot is said once. Whether
there is a shuffle is seen by the stages that have run, and not by the plan: what `foreachBatch` does with a
micro-batch is in no plan.
"""

from __future__ import annotations

from attrs import define, frozen

from spark_elastic.core.events import SourceFacts

BATCHES = 3
"""Micro-batches with rows and without a shuffle, after which a query is taken for one that has none.

News of stages come by another way than those of micro-batches, and may be later.
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
        """Whether the query is taken for one without a shuffle."""
        return not self.seen and self.batches >= BATCHES

    def stage_read_shuffle(self) -> None:
        """Note that a stage of a micro-batch has read a shuffle; one that ever did may do so again."""
        self.seen = True

    def committed(self, rows: int) -> bool:
        """Note a micro-batch; return whether it is the one by which it is known that there is no shuffle."""
        known = self.has_none
        self.batches += rows > 0 and not known
        return self.has_none and not known


@frozen
class Reading:
    """How the `sources` of a query are read: in so many `tasks`, as they were last told, None: as Spark does.

    With `divide_ordered` several tasks may share what has an order.
    """

    sources: tuple[SourceFacts, ...]
    divide_ordered: bool
    tasks: int | None

    def follows(self, source: SourceFacts) -> bool:
        """Say whether a source can follow the slots."""
        return source.divisible and (not source.ordered or self.divide_ordered)

    @property
    def can_follow(self) -> bool:
        """Whether more slots can make a difference."""
        return any(map(self.follows, self.sources))

    def is_fixed(self, whole: bool) -> bool:
        """Whether no slot gets it another task; `whole` says that its last batch could not be divided."""
        return whole or not self.can_follow

    @property
    def can_follow_in_part(self) -> bool:
        """Whether that holds for some of the sources only."""
        return self.can_follow and not all(map(self.follows, self.sources))

    @property
    def stuck(self) -> str:
        """The names of the sources that stay as they are, in words."""
        names = ", ".join(source.name for source in self.sources if not self.follows(source))
        return names or "none is known"

    @property
    def help(self) -> str:
        """What would make one of those follow."""
        by_order = any(source.divisible and not self.follows(source) for source in self.sources)
        return _BY_ORDER if by_order else _BY_SHUFFLE
