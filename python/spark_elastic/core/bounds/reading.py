"""How the sources of a query are read whose micro-batches have no shuffle.

Such a query has the parallelism of its sources: to give its shuffles another number of partitions changes
nothing. So its sources follow the slots, as far as they can be divided, and what cannot is said once. Whether
there is a shuffle is seen by the stages that have run, and not by the plan: what `foreachBatch` does with a
micro-batch is in no plan.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, frozen

from spark_elastic.core.events import SourceFacts
from spark_elastic.core.settings import CoreSettings

BATCHES = 3
"""Micro-batches with rows and without a shuffle, after which a query is taken for one that has none.

News of stages come by another way than those of micro-batches, and may be later.
"""

_BY_ORDER = (
    "spark.elastic.source.divideOrdered=true would let several tasks share a partition of it, whose records "
    "may then be written in another order; so would its option minPartitions"
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


@frozen(kw_only=True)
class Reading:
    """What can be done about how sources are read: which `follow` the slots, in their order.

    `tasks` is what they were last told, None: nothing. `stuck` names those that do not, `help` says what
    would make one of them follow.
    """

    follow: tuple[bool, ...]
    tasks: int | None
    stuck: str
    help: str

    @property
    def can_follow(self) -> bool:
        """Whether more slots can make a difference."""
        return any(self.follow)


def reading(sources: Iterable[SourceFacts], settings: CoreSettings, tasks: int | None) -> Reading:
    """Say which sources can follow the slots."""
    known = tuple(sources)
    follow = tuple(_follows(source, settings) for source in known)
    stuck = [source for source, follows in zip(known, follow, strict=True) if not follows]
    by_order = any(source.divisible for source in stuck)
    return Reading(
        follow=follow,
        tasks=tasks,
        stuck=", ".join(source.name for source in stuck) or "none is known",
        help=_BY_ORDER if by_order else _BY_SHUFFLE,
    )


def _follows(source: SourceFacts, settings: CoreSettings) -> bool:
    return source.divisible and (not source.ordered or settings.divide_ordered)
