"""The number of executors to request from the cluster, and which to give back.

Each query declares the slots that it could use, its upper bound; together they are the application's demand.
A query without a bound of its own uses the available slots: nothing is requested for it, and while it lives
nothing is released. Some clusters give an application all their workers unless it requests a number of them;
they get no number while such a query lives. Demand and supply are reconciled on each change. An executor that
was requested and has not come yet counts as supply, so that nothing is requested twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import define, field, frozen

from spark_elastic.core.bounds.requirements import Requirements, joined_groups, needed_slots
from spark_elastic.core.cluster.slots import SlotPool
from spark_elastic.core.keys.key import is_on, parse_size
from spark_elastic.core.settings import CoreSettings

# ---- The number of executors that an application may have, whatever the demand: the largest allowed number
# is granted.


_MIB = 1 << 20
_LEAST_OVERHEAD = "384m"
_OVERHEAD = "0.1"


@frozen(kw_only=True)
class ExecutorLimits:
    """Limits on the executors of an application: from `least` up to `most`, None without a limit.

    `limited_by` names the setting that `most` comes from. If the limits contradict each other, the upper one
    counts.
    """

    least: int = 0
    most: int | None = None
    limited_by: str = ""

    @classmethod
    def of(cls, settings: CoreSettings, cores: int, memory: int | None) -> ExecutorLimits:
        """Combine the settings; an executor has `cores`, and `memory` in bytes, None if unknown."""
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
        """Return the allowed number of executors for a wanted one."""
        wanted = max(executors, self.least)
        return wanted if self.most is None else min(wanted, self.most)


def executor_memory(conf: Mapping[str, str]) -> int | None:
    """Return the bytes that the cluster manager counts for one executor by Spark's settings.

    A Standalone worker counts its heap alone; others also count its overhead, off-heap memory and Python
    memory. The result is None where Spark would reject the settings. A number without a unit counts MiB, as
    in Spark.
    """
    try:
        memory = spark_size(conf.get("spark.executor.memory", "1g"))
        if conf.get("spark.master", "").startswith("spark://"):
            return memory
        overhead = conf.get("spark.executor.memoryOverhead")
        beside = _usual_overhead(conf, memory) if overhead is None else spark_size(overhead)
        if is_on(conf, "spark.memory.offHeap.enabled"):
            beside += parse_size(conf.get("spark.memory.offHeap.size", "0b"))
        return memory + beside + spark_size(conf.get("spark.executor.pyspark.memory", "0"))
    except (ValueError, OverflowError):
        return None


def _usual_overhead(conf: Mapping[str, str], memory: int) -> int:
    # Kubernetes' own factor includes the overhead of a Python application.
    usual = conf.get("spark.kubernetes.memoryOverheadFactor", _OVERHEAD)
    factor = float(conf.get("spark.executor.memoryOverheadFactor", usual))
    least = spark_size(conf.get("spark.executor.minMemoryOverhead", _LEAST_OVERHEAD))
    return max(least, int(memory * factor))


def spark_size(text: str) -> int:
    """Return the bytes of a size of memory as Spark writes it: a number alone is MiB. Raises ValueError."""
    return int(text) * _MIB if text.strip().isdigit() else parse_size(text)


EVERY = 2**31 - 1
"""An unlimited number of executors: Spark's Standalone master treats it as no number."""

_FIRST_RETRY_MS = 5_000
_LAST_RETRY_MS = 300_000


@frozen(kw_only=True)
class ExecutorOrder:
    """Request `total` executors in all, with `wanted` of them for use, and give `release` back.

    `leaving` of them are about to go; others should be there before.
    """

    total: int
    wanted: int
    leaving: int = 0
    release: tuple[str, ...] = ()


@frozen(kw_only=True)
class BatchDemand:
    """The demand of batch stages: `executors` in addition to those of the queries.

    `idle` are the executors that run none of their tasks. Rewriting shuffle data would take `written_ms` of
    one slot for each byte, 0 if unknown, or if the data is not lost.
    """

    executors: int = 0
    idle: frozenset[str] = frozenset()
    written_ms: float = 0.0

    def keep_ms(self, pool: SlotPool, executor: str) -> int:
        """Return how long rewriting the shuffle data of an executor would keep all its slots busy.

        The executor stays for as long, since it is unknown whether the data will be read.
        """
        return round(pool.shuffle_bytes(executor) * self.written_ms / max(1, pool.usable.get(executor, 1)))


@define(kw_only=True)
class ExecutorDemand:
    """The demand of one application.

    `usual_slots` are the expected slots of an executor while none is present. `gives_all` says that the
    cluster gives all its executors unless a number is requested. `requested` is the last requested total.
    `refused_with` is the number of executors that were present when that was refused: the request is repeated
    when there are more or fewer, and at `retry_at` (epoch ms), which comes later after each of `refusals` in
    a row. `surplus_since` is when a surplus began (epoch ms), `surplus_most` the most executors wanted since,
    and `release_at` when the next one is given back. `releasing` are those that were given back and are not
    gone yet. `advised` is the last surplus (wanted, here) whose release was only advised. `limited` are the
    executors wanted and the smaller number allowed, None if all are allowed; `limited_told` is its last
    reported value. `raised` says that more are wanted than the queries need.
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
        """The time at which a surplus is given back or a request is repeated, None without either."""
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
        """Compare the demand with the supply; `most` is the parallelism that counts as no bound.

        If the demand exceeds the `limits`, the largest allowed number is wanted. The demand of `batch` stages
        is added to what the queries need; None if no policy states one.
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
        # The cluster manager counts an excluded executor among the requested ones.
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
        """Request another total; the same one again if it was refused and something has changed."""
        total += leaving
        retries = self.retry_at is not None and at >= self.retry_at
        if total == self.requested and self.refused_with in (None, len(here)) and not retries:
            return None
        self.requested, self.refused_with, self.retry_at = total, None, None
        return ExecutorOrder(total=total, wanted=wanted, leaving=leaving)

    def refused(self, at: int, pool: SlotPool) -> None:
        """Note that the cluster refused a request.

        The request is repeated when the number of executors has changed, or after a pause that doubles each
        time: a cluster without a master refuses what it would grant a minute later. A release is tried again
        when the surplus has lasted once more.
        """
        self.releasing = frozenset()
        self.refused_with = len(pool.usable)
        self.refusals += 1
        # The exponent is bounded so that no number grows without limit.
        self.retry_at = at + min(_LAST_RETRY_MS, _FIRST_RETRY_MS * 2 ** min(self.refusals - 1, 10))

    def done(self) -> None:
        """Note that the cluster has carried out a request."""
        self.refusals = 0

    def only_advised(self, order: ExecutorOrder) -> None:
        """Note that a release was only advised: no executor goes, and it is not reported again."""
        self.releasing -= set(order.release)
        self.advised = (order.wanted, order.wanted + len(order.release))

    def lost(self) -> None:
        """Note that the outcome of the last orders is unknown: what is still wanted is requested again."""
        self.requested = self.refused_with = self.retry_at = None
        self.refusals = 0
        self.releasing = frozenset()

    def _excluded(self, pool: SlotPool) -> int:
        """Count the executors that are present, get no tasks, and stay."""
        return sum(
            info.excluded and not info.decommissioning and id not in self.releasing
            for id, info in pool.executors.items()
        )

    def _leaving(self, pool: SlotPool) -> int:
        """Count the executors that were decommissioned from outside and are not gone yet.

        Kubernetes and YARN count them among the requested ones until they are gone, so without an addition no
        replacement would start before. A Standalone master no longer counts them.
        """
        if self.gives_all:
            return 0
        return sum(info.decommissioning and id not in self.releasing for id, info in pool.executors.items())

    def _wanted(self, here: Mapping[str, int], queries: tuple[Requirements, ...], most: int) -> int | None:
        """Return the number of executors that are wanted, None if no bound determines it."""
        groups = joined_groups(queries).values()
        bounded = [group.wanted for group in groups if group.wanted < most]
        # For a group without an upper bound, only its need is known, not what it could use.
        needed = [max(group.lower, group.least) for group in groups if group.wanted >= most]
        slots = sum(bounded) + sum(needed)
        # Once none is requested, none comes on its own either.
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
        """Add the demand of batch stages to the need of the queries; without a query it is all.

        It is added here alone, because only here groups that share slots and queries without a policy count.
        """
        if wanted is None:  # a query without a known need uses the available executors
            wanted = len(here) if queries else 0
        each = max(here.values(), default=self.usual_slots)
        return max(wanted, -(-needed_slots(queries, most) // each) + batch.executors)

    def _allowed(self, wanted: int | None, here: int, limits: ExecutorLimits) -> int | None:
        """Put the demand within the limits; without a known demand the limits count alone."""
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
        """Give back a surplus after `idle_ms`, or after the time to rewrite its shuffle data if longer."""
        if self.advised == (wanted, len(here)):
            self.surplus_since = None
            return None
        if self.surplus_since is None or self.surplus_most >= len(here):
            self.surplus_since, self.surplus_most = at, wanted
        self.surplus_most = most = max(self.surplus_most, wanted)
        idle_at = self.surplus_since + self.idle_ms
        if at < idle_at and batch.written_ms == 0:  # no shuffle data changes that, so it is not inspected
            self.release_at = idle_at
            return None
        ripe = {id: self.surplus_since + max(self.idle_ms, batch.keep_ms(pool, id)) for id in here}
        order = {id: number for number, id in enumerate(pool.executors)}
        # An executor without batch tasks and with little data is missed least; of equals the latest one.
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
