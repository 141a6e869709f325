"""What a policy sees: a frozen view of the application at one moment.

All times are epoch ms, all names that end in ``_ms`` are durations in ms. What is unknown is None, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from attrs import evolve, field, frozen
from attrs.validators import ge, optional

from spark_elastic.core.bounds.requirements import Requirements
from spark_elastic.core.events import BatchStage, OffsetsBehind, QueryFacts
from spark_elastic.core.keys.rescaling import Mode
from spark_elastic.core.load.pace import Batch
from spark_elastic.core.settings import CoreSettings

# ---- The slots that the partitions of a query keep busy, and the slots needed to keep a given number busy.
# Tasks run in waves, and the last wave is not full. With many waves, it is half full on average.


_FEW = 2
_LAST = 0.5
_MOST = 1.5
"""At most this multiple of the wanted slots is used to save a wave; beyond it, other partitions help."""


def kept_busy(partitions: int, slots: int) -> float:
    """Return the number of slots that a number of partitions keeps busy, at least 1."""
    if slots < 1:
        return 1.0
    count = max(1, partitions)
    whole = -(-count // slots)
    return max(1.0, count / (whole if whole <= _FEW else count / slots + _LAST))


def slots_that_keep_busy(partitions: int, wanted: float) -> float:
    """Return the slots needed to keep `wanted` of them busy, `wanted` if there are no more partitions."""
    if wanted >= partitions or wanted <= 1:
        return wanted
    waves = partitions / wanted
    if waves >= _FEW + _LAST:
        return partitions / (waves - _LAST)
    return min(partitions / min(_FEW, int(waves)), _MOST * wanted)


# ---- Limits on the slots of a query that policies state, within the bounds that are declared for it. They
# limit slots, not partitions: no state is moved to meet them, and no start waits for them.


@frozen(kw_only=True)
class SlotLimits:
    """A range of slots, from `lower` to `upper`; each is 1 or more, None for no limit.

    `by` names who wants it, such as "the window morning". Raises ValueError unless 1 <= lower <= upper.
    """

    lower: int | None = field(default=None, validator=optional(ge(1)))
    upper: int | None = field(default=None, validator=optional(ge(1)))
    by: str

    def __attrs_post_init__(self) -> None:
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise ValueError(f"lower limit {self.lower} is above upper limit {self.upper}")


@frozen(kw_only=True)
class Allowed:
    """The allowed range of slots, and who narrows each end of the declared bounds, None if not narrowed."""

    lower: int
    upper: int
    lower_by: str | None = None
    upper_by: str | None = None


def allowed(lower: int, upper: int, limits: Iterable[SlotLimits]) -> Allowed:
    """Fit limits into the declared bounds, 1 <= lower <= upper, and each into those before it."""
    lower_by = upper_by = None
    for limit in limits:
        if limit.lower is not None and limit.lower > lower and lower < upper:
            lower, lower_by = min(limit.lower, upper), limit.by
        if limit.upper is not None and limit.upper < upper and lower < upper:
            upper, upper_by = max(limit.upper, lower), limit.by
    return Allowed(lower=lower, upper=upper, lower_by=lower_by, upper_by=upper_by)


def shown_limits(lower: int, upper: int, limits: Iterable[SlotLimits]) -> str:
    """Describe how limits narrow the declared bounds, and who has stated them; "" if they do not."""
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


# ---- Sizes of micro-batches that count as equal.


_PER_DOUBLING = 2


def size_class(rows: float) -> int:
    """Return the class of a size: two per doubling, so sizes in a class differ by 1.41 times at most."""
    return math.floor(math.log2(max(1.0, rows)) * _PER_DOUBLING)


@frozen(kw_only=True)
class ExecutorMetrics:
    """One executor that takes tasks: its `slots`, and when it became known (`since`)."""

    executor: str
    slots: int
    since: int
    held_bytes: int = 0


@frozen(kw_only=True)
class Sample(Batch):
    """One committed micro-batch: when it `started`, and when it was reported (`at`).

    `behind` is the number of rows that its sources had and it did not read, None if no source reports it.
    `offsets_behind` is that of the source with the partition furthest behind. A sample is not `steady` if the
    slots or the partitions changed while it ran: its duration belongs to neither. Nor is it beside a copy of
    the query's state. `total` is the number of slots of all executors when it was committed, whoever they
    were for, 0 if unknown.

    `rows_per_batch` is the number of rows of one micro-batch, the mean if the sender has folded several into
    this one. `size` is the class of that number. `parallelism` is the number of slots that the batch has kept
    busy: its partitions, by the waves that they took, at least 1. A source with fewer tasks than that leaves
    slots idle only in its own stage, so `parallelism` ignores it.
    """

    at: int
    started: int
    behind: int | None = None
    offsets_behind: OffsetsBehind | None = None
    steady: bool = True
    total: int = 0

    # Derived from the fields above once, since each decision asks for them.
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
class Running:
    """A micro-batch that has run since `at` (epoch ms), now on `slots`.

    It reads `input_rows`, which have arrived in `gap_ms`, and leaves `behind` rows in its sources; each is
    None if unknown. Its slots last `changed` then (epoch ms, 0 if never), and it had `slot_ms` of slots by
    then.
    """

    at: int
    slots: int
    input_rows: int | None = None
    behind: int | None = None
    gap_ms: int | None = None
    changed: int = 0
    slot_ms: int = 0

    def with_slots(self, slots: int, at: int) -> Running:
        """Return it with other slots from a time on (epoch ms)."""
        return evolve(self, slots=slots, changed=at, slot_ms=self._slot_ms(at))

    def mean_slots(self, at: int) -> int:
        """Return the mean of its slots up to a time (epoch ms), rounded, at least 1."""
        return max(1, round(self._slot_ms(at) / max(1, at - self.at)))

    def _slot_ms(self, at: int) -> int:
        return self.slot_ms + self.slots * max(0, at - max(self.at, self.changed))


@frozen(kw_only=True)
class Applied:
    """The slots that a query could use, and the partitions that it had, from `at` on."""

    at: int
    slots: int
    partitions: int | None


@frozen(kw_only=True)
class Wanted:
    """The slots that the metrics alone called for, from `at` until `last`, before any window applies.

    They were for `rows_per_ms`, None if not for a rate.
    """

    at: int
    last: int
    slots: int
    rows_per_ms: float | None = None


@frozen(kw_only=True)
class QueryMetrics:
    """One query.

    `requirements` are those declared for it, `limits` those that earlier policies in the chain have stated;
    no wish exceeds them. `limited` are the limits in force since the last decision. `settings` are those that
    apply to it. `slots` is the number of slots that it can use now. `partitions` is the count in force, None
    while it is unknown. A query is `held` while it waits to be started, `idle` if it has had nothing to read
    for a while, and `moving` if a rescale, or the copy before it, is ordered. `movable` says that its count
    can be changed at all.

    `samples` are its last micro-batches, `earlier` a few older ones with other slots or loads, `running` is
    the one that runs now, None if there is none or it has not been reported. `applied` is what it ran with,
    `wanted` what was wanted for it, each with the newest last. `granted` is the number of slots that the
    policy was granted, None before that, and `granted_at` is when. `raised_at` is when that number last rose,
    None if never (epoch ms). `pauses_ms` are the durations of its last rescales.
    `state_bytes` is the size of its state. It is `throttled` if a policy has limited the rows of its
    micro-batches.
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
    running: Running | None = None
    applied: tuple[Applied, ...] = ()
    wanted: tuple[Wanted, ...] = ()
    granted: int | None = None
    granted_at: int = 0
    raised_at: int | None = None
    pauses_ms: tuple[int, ...] = ()
    state_bytes: int = 0
    throttled: bool = False

    # Derived from `requirements` and `limits` once, since each decision asks for it.
    allowed: Allowed = field(init=False, eq=False)

    @allowed.default
    def _allowed(self) -> Allowed:
        return allowed(self.requirements.lower, self.requirements.upper, self.limits)

    @property
    def lower(self) -> int:
        """The minimum of slots: the declared lower bound, or a limit that a policy has stated."""
        return self.allowed.lower

    @property
    def upper(self) -> int:
        """The maximum of slots: the declared upper bound, or a limit that a policy has stated."""
        return self.allowed.upper

    @property
    def latest(self) -> Sample | None:
        """The last micro-batch, None before the first."""
        return self.samples[-1] if self.samples else None

    @property
    def behind(self) -> int | None:
        """The number of rows that its sources have and it has not read, None if unknown."""
        latest = self.latest
        return None if latest is None else latest.behind


@frozen(kw_only=True)
class BatchMetrics:
    """The batch stages that have been submitted and have not ended.

    `work_ms` is the work left in them, in ms of one slot, as far as it is known. `crowded_ms` is how long
    tasks of such stages have waited for slots, less the time since in which none has, at least 0. `row`
    counts the stages that have ended meanwhile, and `row_ms` is what they took, in ms of one slot. `active`
    says that there is a stage, or was since the last decision. `executors` is the number last wanted for
    them, in addition to those of the queries, and `peak` the most that the metrics called for in the last
    seconds.
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
        """The number of tasks that have not finished."""
        return sum(stage.left for stage in self.stages)

    @property
    def waiting(self) -> int:
        """The number of tasks that have not begun."""
        return sum(stage.waiting for stage in self.stages)


@frozen(kw_only=True)
class ClusterView:
    """The application at the time `at`.

    `slots` is the number of slots of all `executors`; an executor that has not joined is assumed to have
    `usual_slots`. `requested` is the number of executors last requested, None if none was. `waiting` has the
    requested totals that have not been reached, in ascending order, each with its time (epoch ms).
    `startups_ms` are the times from request to start of the last executors that joined. `settings` are those
    of the application. `least_executors` is the minimum that policies have wanted since the last decision.
    `needed` is the number of slots that all its queries call for now. `batch` are its batch stages, None
    until there has been one.
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
