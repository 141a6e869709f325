"""The dialogue with the cluster about executors: orders, their outcomes, and the next check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import define, evolve, field, frozen

from spark_elastic.core.actions import Action, DecommissionExecutors, KillExecutors, RequestExecutors
from spark_elastic.core.bounds.requirements import MAX_PARALLELISM, Requirements
from spark_elastic.core.bounds.shares import Claim, Share, share_out
from spark_elastic.core.cluster.executors import (
    EVERY,
    BatchDemand,
    ExecutorDemand,
    ExecutorLimits,
    ExecutorOrder,
    executor_memory,
)
from spark_elastic.core.cluster.slots import SlotPool, TaskSize
from spark_elastic.core.events import ActionFailed, ActionOutcome, ExecutorEvent, ExecutorUsage
from spark_elastic.core.keys.key import is_on
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.turn import Alarm, Turn


@frozen(kw_only=True)
class PolicyWants:
    """The total demand of policies: at least this many `executors`; `by` names the policy that wants them.

    `of_all` says that a policy has decided for each query what it should have; then each upper bound counts.
    `batch` is the additional demand of batch stages, None if no policy states one.
    """

    executors: int = 0
    by: str = ""
    of_all: bool = False
    batch: BatchDemand | None = None


@define
class Supply:
    """The executors of one application; only adaptive mode requests any.

    `allowed` is False where Spark's dynamic allocation already manages them. It then keeps `kept` executors
    even if no task waits for one (None if it is off), and at most `most` at any time. `orders` are those
    without an outcome yet. `keeps_data` says that the shuffle data of a released executor is not lost.
    `limits` are those of the application, `wanted` the last grants to policies. `stale` says that the
    executors, or the orders, have changed since the last check.
    """

    settings: CoreSettings
    demand: ExecutorDemand = field(init=False)
    kept: int | None = None
    most: int = 0
    decommissions: bool = False
    keeps_data: bool = False
    orders: set[str] = field(factory=set)
    alarm: Alarm = field(factory=Alarm)
    limits: ExecutorLimits = field(factory=ExecutorLimits)
    wanted: PolicyWants = field(factory=PolicyWants)
    stale: bool = True

    def __attrs_post_init__(self) -> None:
        self.demand = ExecutorDemand(idle_ms=self.settings.slot_idle_ms)

    def begin(self, conf: Mapping[str, str], task: TaskSize, turn: Turn) -> None:
        """Adopt Spark's own settings about executors; orders without an outcome by now are lost."""
        self.alarm.lost()
        if self.orders:
            self.orders.clear()
            self.demand.lost()
        cores = int(conf.get("spark.executor.cores", "1"))
        self.demand.usual_slots = max(1, task.slots(cores))
        self.limits = ExecutorLimits.of(self.settings, cores, executor_memory(conf))
        self.demand.gives_all = conf.get("spark.master", "").startswith("spark://")
        self.decommissions = is_on(conf, "spark.decommission.enabled")
        self.kept = _kept(conf)
        self.most = int(conf.get("spark.dynamicAllocation.maxExecutors", MAX_PARALLELISM))
        moved = self.decommissions and is_on(conf, "spark.storage.decommission.enabled")
        self.keeps_data = moved or is_on(conf, "spark.shuffle.service.enabled")
        self.stale = True
        if not self.allowed and self.settings.mode != "off":
            adaptive = self.settings.mode == "adaptive"
            turn.report("executors_left_alone" if adaptive else "executors_may_be_removed")

    @property
    def allowed(self) -> bool:
        """Whether executors may be requested and released."""
        return self.kept is None

    def share_out(self, claims: Iterable[Claim], pool: SlotPool) -> dict[str, Share]:
        """Give each query its share of the slots; `claims` are in the order of their submission."""
        shares = share_out(claims, pool.total, self._unasked(pool))
        if self.kept is None:
            return shares
        reach = self.most * self.demand.usual_slots
        return {query: evolve(share, reach=reach) for query, share in shares.items()}

    def _unasked(self, pool: SlotPool) -> int | None:
        """Return the slots that there can be while no task waits for one, None without such a limit."""
        if self.kept is None:
            return None
        # Spark counts an excluded executor among those that it keeps.
        excluded = sum(info.excluded for info in pool.executors.values())
        return max(0, self.kept - excluded) * self.demand.usual_slots

    @property
    def _no_bound(self) -> int:
        """The parallelism that counts as no bound.

        If a policy has decided for all queries, it is one above the maximum, so that every bound counts.
        """
        return self.settings.max_parallelism + self.wanted.of_all

    @property
    def _limits(self) -> ExecutorLimits:
        """The limits of the application, raised to the minimum that policies want."""
        return evolve(self.limits, least=max(self.limits.least, self.wanted.executors))

    @property
    def _batch(self) -> BatchDemand | None:
        """The demand of batch stages; data that outlives its executor need not be written again."""
        batch = self.wanted.batch
        return evolve(batch, written_ms=0.0) if batch is not None and self.keeps_data else batch

    @property
    def has_surplus(self) -> bool:
        """Whether there are executors that are not wanted."""
        return self.demand.surplus_since is not None

    def has_to_look(self, now: int) -> bool:
        """Return whether `reconcile` could have another result while the queries and their policies stay."""
        due = self.demand.due
        return self.stale or (due is not None and now >= due)

    def reconcile(
        self, pool: SlotPool, queries: Iterable[Requirements], turn: Turn, wanted: PolicyWants
    ) -> None:
        """Order what is missing or too much, and set the time of the next check."""
        self.stale, self.wanted = False, wanted
        if self.settings.mode != "adaptive" or not self.allowed:
            return
        order = self._look(self.demand, turn.now, pool, queries)
        self._report_limit(len(pool.executors), turn)
        if order is not None:
            # Released executors count as gone from here on, which may change the view of the rest.
            self.stale = True
            self._order(order, len(pool.executors), turn)
        self.alarm.keep(self.demand.due, turn)

    def _look(
        self, demand: ExecutorDemand, now: int, pool: SlotPool, queries: Iterable[Requirements]
    ) -> ExecutorOrder | None:
        return demand.reconcile(now, pool, queries, self._no_bound, self._limits, self._batch)

    def changed(self, event: ExecutorEvent, pool: SlotPool) -> bool:
        """Record an executor that comes, goes or changes its slots; return whether the slots differ now."""
        before = pool.total, self._unasked(pool)
        pool.apply(event)
        self.stale = True
        return before != (pool.total, self._unasked(pool))

    def used(self, event: ExecutorUsage, pool: SlotPool) -> None:
        """Record the data that an executor holds; for a surplus one, its shuffle data shifts the release."""
        held = pool.shuffle_bytes(event.executor)
        pool.apply(event)
        if self.has_surplus and pool.shuffle_bytes(event.executor) != held:
            self.stale |= self._batch is not None and self._batch.written_ms > 0

    def answered(self, event: ActionOutcome, pool: SlotPool, turn: Turn) -> None:
        """Record the outcome of an order; the outcome of an unknown or abandoned one is ignored."""
        if event.action not in self.orders:
            return
        self.orders.discard(event.action)
        self.stale = True
        if isinstance(event, ActionFailed):
            turn.report("executors_refused", error=event.error)
            self.demand.refused(turn.now, pool)
        else:
            self.demand.done()

    def timer_fired(self, timer: str) -> None:
        """Note that a wait has ended; the check follows at the end of the turn."""
        if self.alarm.rings(timer):
            self.stale = True

    def _report_limit(self, here: int, turn: Turn) -> None:
        """Report, once per change, that the limits allow fewer executors than wanted."""
        if self.demand.limited == self.demand.limited_told:
            return
        self.demand.limited_told = self.demand.limited
        if self.demand.limited is not None:
            wanted, allowed = self.demand.limited
            name = self.limits.limited_by
            turn.report("executors_limited", before=here, after=allowed, wanted=wanted, setting=name)

    def _order(self, order: ExecutorOrder, here: int, turn: Turn) -> None:
        released = ", ".join(order.release)
        batch = 0 if self.wanted.batch is None else self.wanted.batch.executors
        if order.release:
            by_policy = self.wanted.of_all or self.wanted.batch is not None
            reason = "executors_not_wanted" if by_policy else "executors_released"
        elif order.total == EVERY:
            reason = "executors_unlimited"
        elif order.leaving:
            reason = "executors_replaced"
        elif self.demand.raised and self.wanted.executors >= order.wanted:
            reason = "executors_at_least"
        elif batch:
            reason = "executors_for_batch"
        else:
            reason = "executors_wanted" if self.wanted.of_all else "executors_requested"
        wanted = order.wanted if order.release else order.total
        turn.report(
            reason, before=here, after=wanted, wanted=wanted, released=released,
            leaving=order.leaving, by=self.wanted.by, batch=batch,
        )  # fmt: skip
        if self.settings.advise_only:
            if order.release:
                self.demand.only_advised(order)
            return
        # The new total first: a release alone would make the cluster manager replace what is released.
        self._emit(RequestExecutors(id=turn.next_action(), cause=turn.cause, total=order.total), turn)
        if order.release:
            release = DecommissionExecutors if self.decommissions else KillExecutors
            self._emit(release(id=turn.next_action(), cause=turn.cause, executors=order.release), turn)

    def _emit(self, action: Action, turn: Turn) -> None:
        self.orders.add(action.id)
        turn.emit(action)

    def validate(self, now: int, pool: SlotPool, queries: Iterable[Requirements]) -> None:
        """Check that nothing is under way where nothing may be, and nothing is overlooked.

        Raises AssertionError.
        """
        self.demand.validate()
        if self.settings.mode == "adaptive" and self.allowed and not self.has_to_look(now):
            again = evolve(self.demand)
            assert self._look(again, now, pool, queries) is None
            assert again == self.demand
        if self.settings.mode != "adaptive":
            assert not self.orders
            assert self.alarm.timer is None


def _kept(conf: Mapping[str, str]) -> int | None:
    """Return the executors that dynamic allocation keeps, None where it is off, as in local mode."""
    master = conf.get("spark.master", "")
    if not is_on(conf, "spark.dynamicAllocation.enabled") or master == "local" or master.startswith("local["):
        return None
    return int(conf.get("spark.dynamicAllocation.minExecutors", "0"))
