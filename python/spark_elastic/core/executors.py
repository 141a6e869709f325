"""How many executors to ask the cluster for, and which to give back.

Each query declares the slots that it could use, its upper bound; together they are what the application
wants. A query without a bound of its own uses what is there: for it nothing is requested, and while it
lives nothing is released. Reconciled on each change: an executor that was asked for and has not come yet
counts as supply, so that nothing is asked for twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import define, field, frozen

from spark_elastic.core.requirements import Requirements
from spark_elastic.core.slots import SlotPool


@frozen(kw_only=True)
class Order:
    """Ask for `wanted` executors in all, and give `release` back."""

    wanted: int
    release: tuple[str, ...] = ()


@define(kw_only=True)
class ExecutorDemand:
    """The demand of one application.

    `usual_slots` is what an executor is expected to have while none is there to be looked at. `requested` is
    the total that was asked for last, `refused_with` how many executors were there when that was refused (it
    is asked again when there are more or fewer). `surplus_since` is when there were first more executors
    than wanted (epoch ms), `releasing` are those that were given back and are not gone yet.
    """

    idle_ms: int
    usual_slots: int = 1
    requested: int | None = None
    refused_with: int | None = None
    surplus_since: int | None = None
    releasing: frozenset[str] = field(factory=frozenset)

    @property
    def due(self) -> int | None:
        """When surplus executors are given back, None without any."""
        return None if self.surplus_since is None else self.surplus_since + self.idle_ms

    def reconcile(self, at: int, pool: SlotPool, queries: Iterable[Requirements], most: int) -> Order | None:
        """Compare what is wanted with what is there; `most` is the parallelism that counts as no bound."""
        self.releasing &= pool.usable.keys()
        here = pool.usable
        if self.releasing:
            here = {id: slots for id, slots in here.items() if id not in self.releasing}
        wanted = self._wanted(here, tuple(queries), most)
        if wanted is None:
            self.surplus_since = None
            return None
        if wanted == len(here):
            self.surplus_since = None
            if self.requested is None or self.requested <= wanted:
                return None
            self.requested = wanted  # those that have not come yet are not wanted any more
            return Order(wanted=wanted)
        if wanted > len(here):
            self.surplus_since = None
            if wanted == self.requested and self.refused_with in (None, len(here)):
                return None
            self.requested, self.refused_with = wanted, None
            return Order(wanted=wanted)
        return self._surplus(at, pool, here, wanted)

    def refused(self, pool: SlotPool) -> None:
        """Note that the cluster did not do what was asked.

        A request is made again when the number of executors is another one, a release when the surplus has
        lasted once more.
        """
        self.releasing = frozenset()
        self.refused_with = len(pool.usable)

    def lost(self) -> None:
        """Note that nobody knows what became of the last orders: what is still wanted is asked for again."""
        self.requested = self.refused_with = None
        self.releasing = frozenset()

    def _wanted(self, here: Mapping[str, int], queries: tuple[Requirements, ...], most: int) -> int | None:
        """Count the executors that are wanted, None if nobody has said how many."""
        bounded = [query.desired for query in queries if query.upper < most]
        # Of a query without an upper bound it is known what it needs, if not what it could use.
        needy = [query.needed for query in queries if query.upper >= most and query.needed > 1]
        slots = sum(bounded) + sum(needy)
        if slots == 0:
            return None
        wanted = -(-slots // max(here.values(), default=self.usual_slots))
        return wanted if len(bounded) == len(queries) else max(wanted, len(here))

    def _surplus(self, at: int, pool: SlotPool, here: Mapping[str, int], wanted: int) -> Order | None:
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
        self.requested = wanted
        return Order(wanted=wanted, release=release)

    def validate(self) -> None:
        """Check the ranges. Raises AssertionError."""
        assert self.idle_ms >= 0
        assert self.usual_slots >= 1
        assert self.requested is None or self.requested >= 0
