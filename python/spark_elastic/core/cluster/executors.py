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

from spark_elastic.core.bounds.requirements import Requirements, joined_groups
from spark_elastic.core.cluster.quota import ExecutorLimits
from spark_elastic.core.cluster.slots import SlotPool

EVERY = 2**31 - 1
"""As many executors as there can be: what Spark's Standalone master takes for no number."""

_FIRST_RETRY_MS = 5_000
_LAST_RETRY_MS = 300_000


@frozen(kw_only=True)
class ExecutorOrder:
    """Ask for `total` executors in all, of which `wanted` are to be used, and give `release` back."""

    total: int
    wanted: int
    release: tuple[str, ...] = ()


@define(kw_only=True)
class ExecutorDemand:
    """The demand of one application.

    `usual_slots` is what an executor is expected to have while none is there to be looked at. `gives_all`
    says that the cluster gives all that it can, unless it is asked for a number. `requested` is the total
    that was asked for last, `refused_with` how many executors were there when that was refused: it is asked
    again when there are more or fewer, and at `retry_at` (epoch ms), later after each of `refusals` in a row.
    `surplus_since` is when there were first more executors than wanted (epoch ms), `releasing` are those that
    were given back and are not gone yet, `advised` is the last surplus (wanted, here) of which was only said
    that it could be given back. `limited` are the executors that are wanted and the fewer that there may be,
    None if all may; `limited_told` is what was said of that last.
    """

    idle_ms: int
    usual_slots: int = 1
    gives_all: bool = False
    requested: int | None = None
    refused_with: int | None = None
    refusals: int = 0
    retry_at: int | None = None
    surplus_since: int | None = None
    releasing: frozenset[str] = field(factory=frozenset)
    advised: tuple[int, int] | None = None
    limited: tuple[int, int] | None = None
    limited_told: tuple[int, int] | None = None

    @property
    def due(self) -> int | None:
        """When surplus executors are given back or a request is made again, None without either."""
        if self.surplus_since is None:
            return self.retry_at
        return self.surplus_since + self.idle_ms

    def reconcile(
        self,
        at: int,
        pool: SlotPool,
        queries: Iterable[Requirements],
        most: int,
        limits: ExecutorLimits,
    ) -> ExecutorOrder | None:
        """Compare what is wanted with what is there; `most` is the parallelism that counts as no bound.

        Of more executors than the `limits` allow as many are wanted as fit.
        """
        self.releasing &= pool.executors.keys()
        here = pool.usable
        if self.releasing:
            here = {id: slots for id, slots in here.items() if id not in self.releasing}
        queries = tuple(queries)
        self.limited = None
        uppers = [group.upper for group in joined_groups(queries).values()]
        takes_all = self.gives_all and any(upper >= most for upper in uppers)
        if takes_all and limits.most is None:
            self.surplus_since = self.advised = None
            return None if self.requested is None else self._request(at, here, EVERY, len(here))
        wanted = limits.most if takes_all else self._wanted(here, queries, most)
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
            return self._request(at, here, total, wanted)
        return self._surplus(at, pool, here, wanted, total)

    def _request(self, at: int, here: Mapping[str, int], total: int, wanted: int) -> ExecutorOrder | None:
        """Ask for another total; for the same one again if it was refused and something has changed."""
        retries = self.retry_at is not None and at >= self.retry_at
        if total == self.requested and self.refused_with in (None, len(here)) and not retries:
            return None
        self.requested, self.refused_with, self.retry_at = total, None, None
        return ExecutorOrder(total=total, wanted=wanted)

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

    def _wanted(self, here: Mapping[str, int], queries: tuple[Requirements, ...], most: int) -> int | None:
        """Count the executors that are wanted, None if nobody has said how many."""
        groups = joined_groups(queries).values()
        bounded = [group.upper for group in groups if group.upper < most]
        # Of a group without an upper bound it is known what it needs, if not what it could use.
        needed = [group.lower for group in groups if group.upper >= most]
        slots = sum(bounded) + sum(needed)
        if slots == 0 or (not bounded and slots == 1):
            return None
        wanted = -(-slots // max(here.values(), default=self.usual_slots))
        return max(wanted, len(here)) if needed else wanted

    def _allowed(self, wanted: int | None, here: int, limits: ExecutorLimits) -> int | None:
        """Put what is wanted within the limits; where nobody has said how many, they count alone."""
        if wanted is None:
            allowed = limits.within(here)
            return None if allowed == here else allowed
        allowed = limits.within(wanted)
        if allowed < wanted:
            self.limited = (wanted, allowed)
        return allowed

    def _surplus(
        self, at: int, pool: SlotPool, here: Mapping[str, int], wanted: int, total: int
    ) -> ExecutorOrder | None:
        if self.advised == (wanted, len(here)):
            self.surplus_since = None
            return None
        if self.surplus_since is None:
            self.surplus_since = at
        if at < self.surplus_since + self.idle_ms:
            return None
        self.surplus_since = None
        # What holds least is missed least; of equals the one that came last.
        order = {id: number for number, id in enumerate(pool.executors)}
        cheapest = sorted(here, key=lambda id: (pool.held_bytes(id), -order[id]))
        release = tuple(cheapest[: len(here) - wanted])
        self.releasing |= set(release)
        self.requested = total
        return ExecutorOrder(total=total, wanted=wanted, release=release)

    def validate(self) -> None:
        """Check the ranges. Raises AssertionError."""
        assert self.idle_ms >= 0
        assert self.usual_slots >= 1
        assert self.requested is None or self.requested >= 0
        assert self.surplus_since is None or self.retry_at is None, "too many and too few at once"
