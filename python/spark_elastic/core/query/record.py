"""The known facts about one query: plain data, changed only by the machine and its current state.

Decisions made elsewhere arrive through methods: its share of the slots, its declared bounds, orders.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from attrs import define, field, frozen

from spark_elastic.core.actions import Decision, KeepText
from spark_elastic.core.bounds.requirements import Requirements
from spark_elastic.core.bounds.shares import Share, Standing
from spark_elastic.core.events import (
    Event,
    Failure,
    Provider,
    QueryFacts,
    QueryProgress,
    RunState,
    SavepointRequested,
)
from spark_elastic.core.failures.poison import PoisonWatch
from spark_elastic.core.failures.strategy import RestartStrategy
from spark_elastic.core.load.pace import Pace
from spark_elastic.core.load.reading import Reading, ShuffleWatch
from spark_elastic.core.rescale.concurrency import Candidate
from spark_elastic.core.rescale.failed import FailedBatches, FailedMove
from spark_elastic.core.rescale.gain import Measurements
from spark_elastic.core.rescale.history import History
from spark_elastic.core.rescale.preparation import Preparation
from spark_elastic.core.rescale.situation import OWN_FORMAT, RESCALE_COST_MS, SWITCH_COST_MS, MoveCost
from spark_elastic.core.rescale.transition_manager import TransitionManager
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.turn import Footing, Timer, Turn

OrderKind = Literal["start", "rescale", "prepare", "end", "savepoint"]

MOST_ORDERS = 8
"""Maximum number of orders of one query with an outstanding outcome."""

EXCEPTIONS_KEPT = 16
"""Number of failures kept per query."""

SAVEPOINTS_KEPT = 16
"""Number of savepoints kept per query."""


@frozen(kw_only=True)
class PendingOrder:
    """An action with an outstanding outcome; `target` is the count that it should bring.

    One that is `replaced` by a newer order may or may not be carried out: the newer one's outcome counts. The
    `request` for a savepoint is repeated if the order may be lost. It is None for a savepoint with which the
    query ends: its state repeats that order.
    """

    action: str
    kind: OrderKind
    target: int | None
    at: int
    replaced: bool = False
    request: SavepointRequested | None = None


@frozen(kw_only=True)
class RunFailure:
    """A failure of a run, when it was reported (epoch ms), and the reason of the decision about it."""

    at: int
    failure: Failure
    reason: str


@frozen(kw_only=True)
class Savepoint:
    """A savepoint, completed at `at` (epoch ms): a folder with everything committed up to `batch`."""

    at: int
    path: str
    batch: int
    bytes: int


Reaction = Callable[[Any, Any, Any], None] | str
"""A state's reaction, as a function of state, event and step; or the reason why it ignores the event."""

Reactions = Mapping[type[Any], Reaction]


@define(kw_only=True)
class State(ABC):
    """The current activity of a query, as plain data; `entered` is when it began (epoch ms).

    The table of `reactions` names each event that a state can meet, with its reaction or the reason for
    ignoring it; any other event is reported as unexpected. A state sets no timers: it names the end of its
    wait (`due`), and the machine keeps one timer in step with that, which ends with the state.

    `final` says that nothing more can happen, `starting` that a start is ordered, `ending` that the end is
    ordered, and `looks_at_failures_later` that a failure of the run waits for something else.
    """

    name: ClassVar[str]
    final: ClassVar[bool] = False
    starting: ClassVar[bool] = False
    ending: ClassVar[bool] = False
    looks_at_failures_later: ClassVar[bool] = False

    reactions: ClassVar[Reactions]

    entered: int

    @property
    def due(self) -> int | None:
        """The time at which `due_reached` should be called, None if there is none."""
        return None

    @property
    def moving_until(self) -> int | None:
        """The time until which the query counts as moving its state, None if it does not."""
        return None

    @property
    def preparing(self) -> Preparation | None:
        """The copy of the query's state that is under way, None if there is none."""
        return None

    def candidate(self, record: QueryRecord) -> Candidate | None:
        """Return the move of its state that the query waits for, None if there is none."""
        return None

    @abstractmethod
    def enter(self, step: Any) -> None:
        """Perform the actions on entry."""

    def due_reached(self, step: Any) -> None:
        """React to the time that `due` has named."""
        raise AssertionError(f"{self.name} is never due")

    def lets_pass(self, record: QueryRecord, turn: Turn) -> bool:
        """Accept a change of slots that makes no difference to the query; return whether it did."""
        return False

    def validate(self, record: QueryRecord) -> None:
        """Check the state's own invariants. Raises AssertionError."""
        assert self.entered >= 0

    def handles(self, event: Event) -> bool:
        """Return whether the state reacts to such an event."""
        return callable(self.reactions.get(type(event)))

    def leaves_out(self, event: Event) -> bool:
        """Return whether the state ignores such an event on purpose."""
        return isinstance(self.reactions.get(type(event)), str)


@define(kw_only=True)
class Shares:
    """The slots that a query can use `now`, and those that its state was last notified of (`known`).

    `lacks_since` is since when it wants more than it has (epoch ms), None if it has all that it wants.
    """

    now: Share = field(factory=Share)
    known: Share = field(factory=Share)
    lacks_since: int | None = None

    def give(self, share: Share, at: int) -> None:
        """Give the query another share of the slots from `at` (epoch ms) on."""
        self.now = share
        if share.content:
            self.lacks_since = None
        elif self.lacks_since is None:
            self.lacks_since = at


@define(kw_only=True)
class Checkpoint:
    """The current form of a query's checkpoint; `becomes_rescalable` says that its start changes that.

    `prepares_moves` is as in the facts, or expected after such a start. An original is kept if the state was
    converted. `original_since` is as in the facts, and `original_until` how long it is kept (epoch ms), None
    before a micro-batch has been committed and the query runs.
    """

    provider: Provider
    format: int
    prepares_moves: bool = False
    becomes_rescalable: bool = False
    original_since: int | None = None
    original_until: int | None = None

    @classmethod
    def found(cls, facts: QueryFacts, settings: CoreSettings) -> Checkpoint:
        """Take up the checkpoint that the facts describe."""
        since = None if settings.hands_off else facts.original_since
        return cls(
            provider=facts.provider,
            format=facts.checkpoint_format,
            prepares_moves=facts.prepares_moves,
            original_since=since,
        )

    def started(self, keep_ms: int) -> None:
        """Note that the query runs: what its start does is over."""
        if self.original_since:
            self.original_until = self.original_since + keep_ms

    def committed(self, now: int, keep_ms: int) -> None:
        """Note that a micro-batch has been committed: until then an original is not touched."""
        if self.original_since == 0:
            self.original_since = now
            self.started(keep_ms)

    def note_rescalable(self) -> None:
        """Note that the checkpoint was started in a form that can be re-partitioned."""
        if self.provider != "rocksdb" or self.format < OWN_FORMAT:
            self.prepares_moves = True  # the start turns changelogs on, unless the user has turned them off
        self.provider = "rocksdb"
        self.format = OWN_FORMAT


@define(kw_only=True)
class Failures:
    """The failures of a query: `exceptions` has the newest first, `restarted` counts the restarts.

    `recovering` is True from a failure until the query runs again. `manager` keeps the progress of the wait
    for a rescale from before the failure, None if it continues elsewhere.
    """

    strategy: RestartStrategy
    poison: PoisonWatch = field(factory=PoisonWatch)
    exceptions: tuple[RunFailure, ...] = ()
    batches: FailedBatches = field(factory=FailedBatches)
    manager: TransitionManager | None = None
    recovering: bool = False
    restarted: int = 0


@define(kw_only=True)
class Moves:
    """The moves of a query's state: their `count`, and when the last ones `ended` (epoch ms).

    `moved` is True from a move until a micro-batch with the new count is committed: the state is not moved
    again before. `failed` is a count that could not be put in force, `pause_ms` the pause of the last move.
    `in_pause` and `prepared` are what the last move of each kind has cost, None before the first.
    """

    moved: bool = False
    failed: FailedMove = field(factory=FailedMove)
    ended: tuple[int, ...] = ()
    count: int = 0
    pause_ms: int | None = None
    in_pause: MoveCost | None = None
    prepared: MoveCost | None = None

    def took(self, pause_ms: int, copied: Preparation | None) -> None:
        """Note the pause of a move, and for a prepared one what it has copied."""
        self.pause_ms = pause_ms
        if copied is None:
            self.in_pause = MoveCost(pause_ms=pause_ms)
        else:
            self.prepared = MoveCost(pause_ms=pause_ms, slowdown_ms=copied.slowdown_ms)

    def next_cost(self, *, prepared: bool) -> MoveCost:
        """Return what another move is expected to cost."""
        if prepared:
            return self.prepared or MoveCost(pause_ms=SWITCH_COST_MS, slowdown_ms=0)
        return self.in_pause or MoveCost(pause_ms=RESCALE_COST_MS)


@define(kw_only=True)
class Load:
    """The measurements of micro-batches: by count in `measurements`, the last ones in `pace`.

    `shuffles` tracks whether they have a shuffle. If not, `reads` is the number of tasks that should read the
    sources, None before they follow the slots.
    """

    measurements: Measurements = field(factory=Measurements)
    pace: Pace = field(factory=Pace)
    last_progress: QueryProgress | None = None
    shuffles: ShuffleWatch = field(factory=ShuffleWatch)
    reads: int | None = None


@define(kw_only=True)
class Orders:
    """The orders with an outstanding outcome, by action.

    `aside` has those that only concern how sources are read, with the reason that is reported if one fails.
    `keeping` has the same for orders that keep a text beside the checkpoint.
    """

    pending: dict[str, PendingOrder] = field(factory=dict)
    aside: dict[str, str] = field(factory=dict)
    keeping: dict[str, str] = field(factory=dict)

    def add(self, order: PendingOrder) -> None:
        """Note an order; an outcome can get lost with the process that owed it."""
        orders = self.pending
        orders[order.action] = order
        if len(orders) > MOST_ORDERS:  # those that nothing waits for are dropped first
            *older, _ = orders.values()
            spare = (order.action for order in older if order.replaced or order.kind == "savepoint")
            del orders[next(spare, older[0].action)]

    def put_aside(self, action: str, reason: str) -> None:
        """Note an order that changes how sources are read."""
        _note(self.aside, action, reason)

    def note_keeping(self, action: str, reason: str) -> None:
        """Note an order to keep a text."""
        _note(self.keeping, action, reason)

    def validate(self) -> None:
        """Check that they are few, and at most one rescale and one copy count. Raises AssertionError."""
        assert max(len(self.pending), len(self.aside), len(self.keeping)) <= MOST_ORDERS
        assert all(order.action == key for key, order in self.pending.items())
        rescales = [order for order in self.pending.values() if order.kind == "rescale"]
        assert all(order.replaced for order in rescales[:-1])
        assert sum(order.kind == "prepare" for order in self.pending.values()) <= 1


@define(kw_only=True)
class Told:
    """The last reports about a query: its `decision`, reasons reported only `once`, and its last `hold`.

    `advised` is the last change (before, after, slots) that was only advised. `lifted` says that the hold is
    over, which is not reported: reported again, it would be the same.
    """

    decision: Decision | None = None
    once: set[str] = field(factory=set)
    advised: tuple[int | None, int | None, int] | None = None
    hold: tuple[str | int | None, ...] | None = None
    lifted: bool = False

    @property
    def holding(self) -> Decision | None:
        """The decision that holds the query back now, None if nothing does."""
        said, hold = self.decision, self.hold
        if said is None or said.kind != "held" or hold is None or self.lifted:
            return None
        # A reason that is reported only once replaces the hold, but not the decision.
        return said if hold[0] == said.reason else None


@define(kw_only=True)
class QueryRecord:
    """One query: its current `state`, the `requirements` in force, and the `timer` for its wait.

    `declared` are the requirements that were declared for it; a policy may have narrowed those in force.
    `settings` are its own, None if it has those of the application. `run_state` says whether it runs, or
    where it waits for an answer: held at its start, or failed. `partitions` is the count in force, None while
    unknown; `target` is an ordered count that is not in force yet. `savepoints` has the newest first,
    `stayed_ms` the time spent in each state that it has left. All times are epoch ms.
    """

    facts: QueryFacts
    run: str
    run_state: RunState
    state: State
    stayed_ms: dict[str, int] = field(factory=dict)
    timer: Timer | None = None
    requirements: Requirements
    declared: Requirements
    settings: CoreSettings | None = None
    partitions: int | None
    target: int | None = None
    shares: Shares = field(factory=Shares)
    checkpoint: Checkpoint
    load: Load = field(factory=Load)
    moves: Moves = field(factory=Moves)
    failures: Failures
    orders: Orders = field(factory=Orders)
    told: Told = field(factory=Told)
    history: History
    savepoints: tuple[Savepoint, ...] = ()

    @property
    def standing(self) -> Standing | None:
        """The standing of the query among those that want slots, None if it wants none any more."""
        state, run_state = self.state, self.run_state
        if state.final:
            return None
        if run_state == "running" or state.starting:
            return "running"
        if state.ending:
            return None
        return "recovering" if run_state == "failed" else "waiting"

    @property
    def footing(self) -> Footing:
        """The standing of the query among others, with its requirements and settings."""
        return Footing(self.standing, self.requirements, self.settings, self.state.final)

    @property
    def has_other_slots(self) -> bool:
        """Whether a live query has other slots than its state was last notified of."""
        return self.shares.now != self.shares.known and not self.state.final

    @property
    def due(self) -> int | None:
        """The end of the state's wait, or of the time for which an original is kept; None without either."""
        until = None if self.state.final else self.checkpoint.original_until
        return min((at for at in (self.state.due, until) if at is not None), default=None)

    def declare(self, requirements: Requirements) -> None:
        """Set the declared requirements; those in force follow with `BoundsChanged`."""
        self.declared = requirements

    def reading(self, settings: CoreSettings) -> Reading | None:
        """Return how its sources are read by these settings, None if its micro-batches may have a shuffle."""
        if not self.load.shuffles.has_none:
            return None
        return Reading(self.facts.sources, settings.divide_ordered, self.load.reads)

    def validate(self) -> None:
        """Check all invariants of the query. Raises AssertionError."""
        self.state.validate(self)
        self.history.validate()
        self.requirements.validate()
        self.declared.validate()
        self.failures.batches.validate()
        self.moves.failed.validate()
        self.orders.validate()
        assert self.target is None or self.target >= 1
        due = self.due
        assert (self.timer is None) == (due is None)
        assert self.timer is None or self.timer.at == due


def _note(orders: dict[str, str], action: str, reason: str) -> None:
    """Note an order with the reason to report if it fails. Only the last ones stay: outcomes can get lost."""
    orders[action] = reason
    if len(orders) > MOST_ORDERS:
        del orders[next(iter(orders))]


# ---- The order to keep a text beside the checkpoint of a query.


_FAILED = {"bounds": "bounds_not_kept", "batches": "batches_not_kept", "store": "store_not_kept"}


def keep_text(
    record: QueryRecord, name: Literal["bounds", "batches", "store"], text: str | None, turn: Turn
) -> str:
    """Order that a text outlives the driver, None that none does; return the id of the order."""
    action = turn.next_action()
    record.orders.note_keeping(action, _FAILED[name])
    turn.emit(KeepText(id=action, cause=turn.cause, query=record.facts.query, name=name, text=text))
    return action
