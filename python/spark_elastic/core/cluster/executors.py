"""How many executors to ask the cluster for, and which to give back.

Each query declares the slots that it could use, its upper bound; together they are what the application
wants. A query without a bound of its own uses what is there: for it nothing is requested, and while it
lives nothing is released. A cluster that gives an application all its workers, unless it is asked for a
number of them, is then asked for none. Reconciled on each change: an executor that was asked for and has not
come yet counts as supply, so that nothing is asked for twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import define, field, frozen

from spark_elastic.core.bounds.requirements import Requirements, joined_groups, needed_slots
from spark_elastic.core.cluster.slots import SlotPool
from spark_elastic.core.keys.key import is_on, parse_size
from spark_elastic.core.settings import CoreSettings

# How many executors an application may have, whatever is wanted: as many as fit are granted.


_MIB = 1 << 20
_LEAST_OVERHEAD = "384m"
_OVERHEAD = "0.1"


@frozen(kw_only=True)
class ExecutorLimits:
    """How many executors an application may have: from `least` up to `most`, None without a limit.

    `limited_by` names the setting that `most` comes from. With contradicting limits the upper one counts.
    """

    least: int = 0
    most: int | None = None
    limited_by: str = ""

    @classmethod
    def of(cls, settings: CoreSettings, cores: int, memory: int | None) -> ExecutorLimits:
        """Put the settings together; an executor has so many `cores` and bytes of `memory`, None: unknown."""
        limits: list[tuple[int, str]] = []
        if settings.max_executors is not None:
            limits.append((settings.max_executors, "spark.elastic.maxExecutors"))
        if settings.quota_cores is not None:
            limits.append((settings.quota_cores // max(1, cores), "spark.elastic.quota.cores"))
        if settings.quota_memory is not None and memory:
            limits.append((settings.quota_memory // memory, "spark.elastic.quota.memory"))
        most, name = min(limits, default=(None, ""))
        return cls(least=settings.min_executors, most=most, limited_by=name)

    def within(self, executors: int) -> int:
        """Return as many executors as are allowed of those that are wanted."""
        wanted = max(executors, self.least)
        return wanted if self.most is None else min(wanted, self.most)


def executor_memory(conf: Mapping[str, str]) -> int | None:
    """Return the bytes that the cluster manager counts for one executor by Spark's settings.

    A Standalone worker counts its heap alone; others its overhead, off-heap memory and that of Python, too.
    None where the settings are not what Spark takes. A number without a unit counts MiB, as it does there.
    """
    try:
        memory = _spark_size(conf.get("spark.executor.memory", "1g"))
        if conf.get("spark.master", "").startswith("spark://"):
            return memory
        overhead = conf.get("spark.executor.memoryOverhead")
        beside = _usual_overhead(conf, memory) if overhead is None else _spark_size(overhead)
        if is_on(conf, "spark.memory.offHeap.enabled"):
            beside += parse_size(conf.get("spark.memory.offHeap.size", "0b"))
        return memory + beside + _spark_size(conf.get("spark.executor.pyspark.memory", "0"))
    except (ValueError, OverflowError):
        return None


def _usual_overhead(conf: Mapping[str, str], memory: int) -> int:
    # Kubernetes' own one has what it counts for a Python application.
    usual = conf.get("spark.kubernetes.memoryOverheadFactor", _OVERHEAD)
    factor = float(conf.get("spark.executor.memoryOverheadFactor", usual))
    least = _spark_size(conf.get("spark.executor.minMemoryOverhead", _LEAST_OVERHEAD))
    return max(least, int(memory * factor))


def _spark_size(text: str) -> int:
    return int(text) * _MIB if text.strip().isdigit() else parse_size(text)


EVERY = 2**31 - 1
"""As many executors as there can be: what Spark's Standalone master takes for no number."""

_FIRST_RETRY_MS = 5_000
_LAST_RETRY_MS = 300_000


@frozen(kw_only=True)
class ExecutorOrder:
    """Ask for `total` executors in all, of which `wanted` are to be used, and give `release` back.

    `leaving` of them are about to go, and others are to be there before.
    """

    total: int
    wanted: int
    leaving: int = 0
    release: tuple[str, ...] = ()


@frozen(kw_only=True)
class BatchDemand:
    """What batch stages should have: so many `executors` beside those of the queries.

    `idle` are the executors that run none of their tasks. To write shuffle data again would take `written_ms`
    of one slot for each byte, 0: it is not known, or not lost.
    """

    executors: int = 0
    idle: frozenset[str] = frozenset()
    written_ms: float = 0.0

    def keep_ms(self, pool: SlotPool, executor: str) -> int:
        """Return how long writing the shuffle data of an executor again would keep all its slots busy."""
        return round(pool.shuffle_bytes(executor) * self.written_ms / max(1, pool.usable.get(executor, 1)))


@define(kw_only=True)
class ExecutorDemand:
    """The demand of one application.

    `usual_slots` is what an executor is expected to have while none is there to be looked at. `gives_all`
    says that the cluster gives all that it can, unless it is asked for a number. `requested` is the total
    that was asked for last, `refused_with` how many executors were there when that was refused: it is asked
    again when there are more or fewer, and at `retry_at` (epoch ms), later after each of `refusals` in a row.
    `surplus_since` is when there were first more executors than wanted (epoch ms), `surplus_most` the most
    that were wanted since, `release_at` when the next one is given back; `releasing` are those that were
    given back and are not gone yet, `advised` is the last surplus (wanted, here) of which was only said
    that it could be given back. `limited` are the executors that are wanted and the fewer that there may
    be, None if all may; `limited_told` is what was said of that last. `raised` says that more are wanted than
    the queries need.
    """

    idle_ms: int
    usual_slots: int = 1
    gives_all: bool = False
    requested: int | None = None
    refused_with: int | None = None
    refusals: int = 0
    retry_at: int | None = None
    surplus_since: int | None = None
    surplus_most: int = 0
    release_at: int | None = None
    releasing: frozenset[str] = field(factory=frozenset)
    advised: tuple[int, int] | None = None
    limited: tuple[int, int] | None = None
    limited_told: tuple[int, int] | None = None
    raised: bool = False

    @property
    def due(self) -> int | None:
        """When surplus executors are given back or a request is made again, None without either."""
        return self.retry_at if self.surplus_since is None else self.release_at

    def reconcile(
        self,
        at: int,
        pool: SlotPool,
        queries: Iterable[Requirements],
        most: int,
        limits: ExecutorLimits,
        batch: BatchDemand | None = None,
    ) -> ExecutorOrder | None:
        """Compare what is wanted with what is there; `most` is the parallelism that counts as no bound.

        Of more executors than the `limits` allow as many are wanted as fit. What `batch` stages should have
        comes on top of what the queries need; None: nobody says.
        """
        self.releasing &= pool.executors.keys()
        here = pool.usable
        if self.releasing:
            here = {id: slots for id, slots in here.items() if id not in self.releasing}
        queries = tuple(queries)
        self.limited, self.raised = None, False
        wants = [group.wanted for group in joined_groups(queries).values()]
        takes_all = self.gives_all and any(slots >= most for slots in wants)
        if takes_all and limits.most is None:
            self.surplus_since = self.advised = None
            return None if self.requested is None else self._request(at, here, EVERY, len(here))
        wanted = limits.most if takes_all else self._wanted(here, queries, most)
        if batch is not None:
            wanted = self._with_batch(wanted, here, queries, most, batch)
        wanted = self._allowed(wanted, len(here), limits)
        if wanted is None or wanted <= len(here):
            self.refusals, self.retry_at = 0, None
        if wanted is None or wanted >= len(here):
            self.surplus_since = self.advised = None
        if wanted is None:
            return None
        # For the cluster manager an excluded executor is one of those that were asked for.
        total = wanted + self._excluded(pool)
        if wanted == len(here):
            if self.requested is None or self.requested <= total:
                return None
            self.requested = total  # those that have not come yet are not wanted any more
            return ExecutorOrder(total=total, wanted=wanted)
        if wanted > len(here):
            leaving = self._leaving(pool)
            if limits.most is not None:
                leaving = min(leaving, max(0, limits.most - wanted))
            return self._request(at, here, total, wanted, leaving)
        return self._surplus(at, pool, here, wanted, total, batch or BatchDemand())

    def _request(
        self, at: int, here: Mapping[str, int], total: int, wanted: int, leaving: int = 0
    ) -> ExecutorOrder | None:
        """Ask for another total; for the same one again if it was refused and something has changed."""
        total += leaving
        retries = self.retry_at is not None and at >= self.retry_at
        if total == self.requested and self.refused_with in (None, len(here)) and not retries:
            return None
        self.requested, self.refused_with, self.retry_at = total, None, None
        return ExecutorOrder(total=total, wanted=wanted, leaving=leaving)

    def refused(self, at: int, pool: SlotPool) -> None:
        """Note that the cluster did not do what was asked.

        A request is made again when the number of executors is another one, or after a while that doubles
        each time: a cluster without a master refuses what it would do a minute later. A release is tried
        again when the surplus has lasted once more.
        """
        self.releasing = frozenset()
        self.refused_with = len(pool.usable)
        self.refusals += 1
        # The exponent is bounded so that no number grows without end.
        self.retry_at = at + min(_LAST_RETRY_MS, _FIRST_RETRY_MS * 2 ** min(self.refusals - 1, 10))

    def done(self) -> None:
        """Note that the cluster has done what was asked."""
        self.refusals = 0

    def only_advised(self, order: ExecutorOrder) -> None:
        """Note that a release was not ordered but only advised: nobody goes, and it is not said again."""
        self.releasing -= set(order.release)
        self.advised = (order.wanted, order.wanted + len(order.release))

    def lost(self) -> None:
        """Note that nobody knows what became of the last orders: what is still wanted is asked for again."""
        self.requested = self.refused_with = self.retry_at = None
        self.refusals = 0
        self.releasing = frozenset()

    def _excluded(self, pool: SlotPool) -> int:
        """Count the executors that are there, get no tasks, and stay."""
        return sum(
            info.excluded and not info.decommissioning and id not in self.releasing
            for id, info in pool.executors.items()
        )

    def _leaving(self, pool: SlotPool) -> int:
        """Count the executors that somebody else has decommissioned and that are not gone yet.

        For Kubernetes and YARN they are among those that were asked for until they are gone, so none would be
        started for them before. A Standalone master no longer counts them.
        """
        if self.gives_all:
            return 0
        return sum(info.decommissioning and id not in self.releasing for id, info in pool.executors.items())

    def _wanted(self, here: Mapping[str, int], queries: tuple[Requirements, ...], most: int) -> int | None:
        """Count the executors that are wanted, None if nobody has said how many."""
        groups = joined_groups(queries).values()
        bounded = [group.wanted for group in groups if group.wanted < most]
        # Of a group without an upper bound it is known what it needs, if not what it could use.
        needed = [max(group.lower, group.least) for group in groups if group.wanted >= most]
        slots = sum(bounded) + sum(needed)
        # Where we have asked for none, none comes by itself either.
        none = not here and self.requested == 0
        if slots == 0 or (not bounded and slots == 1 and not none):
            return None
        wanted = -(-slots // max(here.values(), default=self.usual_slots))
        return max(wanted, len(here)) if needed else wanted

    def _with_batch(
        self,
        wanted: int | None,
        here: Mapping[str, int],
        queries: tuple[Requirements, ...],
        most: int,
        batch: BatchDemand,
    ) -> int:
        """Add what batch stages should have to what the queries need; without a query that is all."""
        if wanted is None:  # a query of which nobody has said how many it needs uses what there is
            wanted = len(here) if queries else 0
        each = max(here.values(), default=self.usual_slots)
        return max(wanted, -(-needed_slots(queries, most) // each) + batch.executors)

    def _allowed(self, wanted: int | None, here: int, limits: ExecutorLimits) -> int | None:
        """Put what is wanted within the limits; where nobody has said how many, they count alone."""
        if wanted is None:
            allowed = limits.within(here)
            self.raised = allowed > here
            return None if allowed == here else allowed
        allowed = limits.within(wanted)
        self.raised = allowed > wanted
        if allowed < wanted:
            self.limited = (wanted, allowed)
        return allowed

    def _surplus(
        self,
        at: int,
        pool: SlotPool,
        here: Mapping[str, int],
        wanted: int,
        total: int,
        batch: BatchDemand,
    ) -> ExecutorOrder | None:
        """Give back what is too much for `idle_ms`, or for as long as its shuffle data took to write."""
        if self.advised == (wanted, len(here)):
            self.surplus_since = None
            return None
        if self.surplus_since is None or self.surplus_most >= len(here):
            self.surplus_since, self.surplus_most = at, wanted
        self.surplus_most = most = max(self.surplus_most, wanted)
        idle_at = self.surplus_since + self.idle_ms
        if at < idle_at and batch.written_ms == 0:  # nobody's data changes that: they need not be looked at
            self.release_at = idle_at
            return None
        ripe = {id: self.surplus_since + max(self.idle_ms, batch.keep_ms(pool, id)) for id in here}
        order = {id: number for number, id in enumerate(pool.executors)}
        # What runs no batch stage and holds least is missed least; of equals the one that came last.
        cheapest = sorted(
            (id for id, when in ripe.items() if at >= when),
            key=lambda id: (id not in batch.idle, pool.held_bytes(id), -order[id]),
        )
        release = tuple(cheapest[: len(here) - most])
        if len(release) < len(here) - most:
            self.release_at = min(when for when in ripe.values() if when > at)
        else:
            self.surplus_since = None
        if not release:
            return None
        self.releasing |= set(release)
        self.requested = total + most - wanted
        return ExecutorOrder(total=self.requested, wanted=most, release=release)

    def validate(self) -> None:
        """Check the ranges. Raises AssertionError."""
        assert self.idle_ms >= 0
        assert self.usual_slots >= 1
        assert self.requested is None or self.requested >= 0
        assert self.surplus_since is None or self.retry_at is None, "too many and too few at once"
