"""What a policy sees: one moment of the application, frozen.

All times are epoch ms, all names that end in ``_ms`` are durations in ms. What nobody knows is None, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from attrs import field, frozen
from attrs.validators import ge, optional

from spark_elastic.core.bounds.requirements import Requirements
from spark_elastic.core.events import BatchStage, OffsetsBehind, QueryFacts
from spark_elastic.core.keys.rescaling import Mode
from spark_elastic.core.load.pace import Batch
from spark_elastic.core.settings import CoreSettings

# How many slots the partitions of a query keep busy, and with how many slots they keep so many busy.
# Tasks run in waves, of which the last one is not full. Where there are many, it is half full in the mean.


_FEW = 2
_LAST = 0.5
_MOST = 1.5
"""No more than so many times the slots are taken to have partitions in fewer waves: other partitions help."""


def kept_busy(partitions: int, slots: int) -> float:
    """Return how many of the slots so many partitions keep busy, 1 at least."""
    if slots < 1:
        return 1.0
    count = max(1, partitions)
    whole = -(-count // slots)
    return max(1.0, count / (whole if whole <= _FEW else count / slots + _LAST))


def slots_that_keep_busy(partitions: int, wanted: float) -> float:
    """Return the slots of which so many are kept busy, for more than there are partitions as many."""
    if wanted >= partitions or wanted <= 1:
        return wanted
    waves = partitions / wanted
    if waves >= _FEW + _LAST:
        return partitions / (waves - _LAST)
    return min(partitions / min(_FEW, int(waves)), _MOST * wanted)


# Limits for the slots of a query: those that policies state, within the bounds that are declared for it.
# They limit slots, not partitions: no state is moved into them, and no start waits for them.


@frozen(kw_only=True)
class SlotLimits:
    """From `lower` up to `upper` slots, each 1 or more, None: no limit.

    `by` says who wants that, such as "the window morning". Raises ValueError unless 1 <= lower <= upper.
    """

    lower: int | None = field(default=None, validator=optional(ge(1)))
    upper: int | None = field(default=None, validator=optional(ge(1)))
    by: str

    def __attrs_post_init__(self) -> None:
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise ValueError(f"lower limit {self.lower} is above upper limit {self.upper}")


@frozen(kw_only=True)
class Allowed:
    """From `lower` to `upper` slots, and who limits them further than the declared bounds, None: nobody."""

    lower: int
    upper: int
    lower_by: str | None = None
    upper_by: str | None = None


def allowed(lower: int, upper: int, limits: Iterable[SlotLimits]) -> Allowed:
    """Put limits within the declared bounds, 1 <= lower <= upper, and each within those before it."""
    lower_by = upper_by = None
    for limit in limits:
        if limit.lower is not None and limit.lower > lower and lower < upper:
            lower, lower_by = min(limit.lower, upper), limit.by
        if limit.upper is not None and limit.upper < upper and lower < upper:
            upper, upper_by = max(limit.upper, lower), limit.by
    return Allowed(lower=lower, upper=upper, lower_by=lower_by, upper_by=upper_by)


def shown_limits(lower: int, upper: int, limits: Iterable[SlotLimits]) -> str:
    """Say in words what limits make of the declared bounds, and who has stated them; "" if nothing."""
    may = allowed(lower, upper, limits)
    by = ", ".join(dict.fromkeys(name for name in (may.lower_by, may.upper_by) if name is not None))
    if not by:
        return ""
    if may.lower == may.upper:
        range_ = f"{may.lower}"
    elif may.upper_by is None:
        range_ = f"at least {may.lower}"
    elif may.lower_by is None:
        range_ = f"at most {may.upper}"
    else:
        range_ = f"{may.lower} to {may.upper}"
    return f"{range_}, by {by}"


# Sizes of micro-batches that count as the same.


_PER_DOUBLING = 2


def size_class(rows: float) -> int:
    """Return the number of a size: two to each doubling, so those of one number differ by 1.41 at most."""
    return math.floor(math.log2(max(1.0, rows)) * _PER_DOUBLING)


@frozen(kw_only=True)
class ExecutorMetrics:
    """One executor that takes tasks: its `slots`, and since when it is known."""

    executor: str
    slots: int
    since: int
    held_bytes: int = 0


@frozen(kw_only=True)
class Sample(Batch):
    """One committed micro-batch: when it `started`, and when it was heard of (`at`).

    `behind` are the rows that its sources had and it did not read, None if no source says it.
    `offsets_behind` are those of the partitions of the source furthest behind. One is not `steady` if the
    slots or the partitions were changed while it ran: its duration belongs to neither. `total` are the
    slots of all executors when it was committed, whoever they were for, 0 if that is not known.

    `rows_per_batch` are the rows of one micro-batch, where the sender has folded several into this one: their
    mean. `size` numbers what counts as the same. `parallelism` is how many slots the batch has kept busy: its
    partitions, by the waves that they took, at least 1. A source with fewer tasks than that leaves slots idle
    only in its own stage, so it is not counted there.
    """

    at: int
    started: int
    behind: int | None = None
    offsets_behind: OffsetsBehind | None = None
    steady: bool = True
    total: int = 0

    # Derived from the fields above, once: each decision asks for them.
    rows_per_batch: float = field(init=False, eq=False)
    parallelism: float = field(init=False, eq=False)
    size: int = field(init=False, eq=False)

    @rows_per_batch.default
    def _rows_per_batch(self) -> float:
        return self.input_rows / self.batches

    @parallelism.default
    def _parallelism(self) -> float:
        return kept_busy(self.partitions, self.slots)

    @size.default
    def _size(self) -> int:
        return size_class(self.rows_per_batch)


@frozen(kw_only=True)
class Applied:
    """The slots that a query could use, and the partitions that it had, from `at` on."""

    at: int
    slots: int
    partitions: int | None


@frozen(kw_only=True)
class Wanted:
    """The slots for which the metrics alone have called, from `at` until `last`: before any window.

    They were for `rows_per_ms`, None: not for a rate.
    """

    at: int
    last: int
    slots: int
    rows_per_ms: float | None = None


@frozen(kw_only=True)
class QueryMetrics:
    """One query.

    `requirements` are those declared for it, `limits` what policies earlier in the chain have stated; nothing
    that a policy wants goes beyond them. `limited` are the limits in force since the last decision.
    `settings` are those that count for it. `slots` are those that it can use now, `partitions` the count in
    force, None while it is unknown. One that is `held` waits to be started, one that is `idle` has had
    nothing to read for a while, one that is `moving` has a rescale ordered. `movable` says that its count can
    be changed at all. `samples` are its last micro-batches, `earlier` a few from before that ran with other
    slots or other loads, `applied` what it ran with, `wanted` what was wanted for it, all with the newest
    last. `granted` are the slots that the policy has been granted, None before that, and `granted_at` since
    when, `raised_at` when there were more of them than before the last time, None: never (epoch ms).
    `pauses_ms` are what its last rescales took. `state_bytes` is the size of its state. One is `throttled` if
    a policy has limited the rows of its micro-batches.
    """

    query: str
    facts: QueryFacts
    settings: CoreSettings
    requirements: Requirements
    limits: tuple[SlotLimits, ...] = ()
    limited: tuple[SlotLimits, ...] = ()
    slots: int
    partitions: int | None = None
    held: bool = False
    idle: bool = False
    moving: bool = False
    movable: bool = True
    samples: tuple[Sample, ...] = ()
    earlier: tuple[Sample, ...] = ()
    applied: tuple[Applied, ...] = ()
    wanted: tuple[Wanted, ...] = ()
    granted: int | None = None
    granted_at: int = 0
    raised_at: int | None = None
    pauses_ms: tuple[int, ...] = ()
    state_bytes: int = 0
    throttled: bool = False

    # Derived from `requirements` and `limits`, once: each decision asks for it.
    allowed: Allowed = field(init=False, eq=False)

    @allowed.default
    def _allowed(self) -> Allowed:
        return allowed(self.requirements.lower, self.requirements.upper, self.limits)

    @property
    def lower(self) -> int:
        """The fewest slots that it is to have: its declared lower bound, or what a policy has stated."""
        return self.allowed.lower

    @property
    def upper(self) -> int:
        """The most slots that it may have: its declared upper bound, or what a policy has stated."""
        return self.allowed.upper

    @property
    def latest(self) -> Sample | None:
        """The last micro-batch, None before the first."""
        return self.samples[-1] if self.samples else None

    @property
    def behind(self) -> int | None:
        """The rows that its sources have and it has not read, None if that is not known."""
        latest = self.latest
        return None if latest is None else latest.behind


@frozen(kw_only=True)
class BatchMetrics:
    """The batch stages that have been submitted and are not over.

    `work_ms` is what is left of them, in ms of one slot, as far as it is known. `crowded_ms` is for how long
    tasks of such stages have waited for slots, less the time in which none has since, at least 0; `row` are
    the stages that came to their end meanwhile, and `row_ms` what they took, in ms of one slot. `active` says
    that there is a stage, or was since the last decision. `executors` are those that were wanted for them
    last, beside those of the queries, and `peak` the most that the metrics called for in the last seconds.
    """

    stages: tuple[BatchStage, ...] = ()
    work_ms: float = 0.0
    crowded_ms: int = 0
    row: int = 0
    row_ms: float = 0.0
    active: bool = False
    executors: int = 0
    peak: int = 0

    @property
    def left(self) -> int:
        """The tasks that are not over."""
        return sum(stage.left for stage in self.stages)

    @property
    def waiting(self) -> int:
        """The tasks that have not begun."""
        return sum(stage.waiting for stage in self.stages)


@frozen(kw_only=True)
class ClusterView:
    """The application at the time `at`.

    `slots` are those of all `executors`; one that is not there yet is taken to have `usual_slots`.
    `requested` is the number of executors that was asked for last, None if none was. `waiting` has the totals
    that were asked for and have not come, each more than the one before, with when (epoch ms). `startups_ms`
    are the times from the request of an executor until it was there, of the last ones that came. `settings`
    are those of the application. `least_executors` is what policies have wanted at least since the last
    decision. `needed` are the slots that all its queries call for now. `batch` are its batch stages, None as
    long as there has been none.
    """

    at: int
    mode: Mode
    settings: CoreSettings = field(factory=CoreSettings)
    slots: int
    usual_slots: int = 1
    executors: tuple[ExecutorMetrics, ...] = ()
    requested: int | None = None
    least_executors: int = 0
    waiting: tuple[tuple[int, int], ...] = ()
    startups_ms: tuple[int, ...] = ()
    needed: int = 0
    queries: Mapping[str, QueryMetrics] = field(factory=dict)
    batch: BatchMetrics | None = None
