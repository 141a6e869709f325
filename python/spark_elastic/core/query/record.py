"""What is known about one query: plain data, changed only by the machine and the state it is in.

What others decide about it comes in by methods: its share of the slots, what is declared for it, orders.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from attrs import define, field, frozen

from spark_elastic.core.actions import Decision, KeepText
from spark_elastic.core.bounds.requirements import Requirements
from spark_elastic.core.bounds.shares import Share, Standing
from spark_elastic.core.events import Event, Failure, Provider, QueryFacts, QueryProgress, RunState
from spark_elastic.core.failures.poison import PoisonWatch
from spark_elastic.core.failures.strategy import RestartStrategy
from spark_elastic.core.load.pace import Pace
from spark_elastic.core.load.reading import Reading, ShuffleWatch
from spark_elastic.core.rescale.concurrency import Candidate
from spark_elastic.core.rescale.failed import FailedBatches, FailedMove
from spark_elastic.core.rescale.gain import Measurements
from spark_elastic.core.rescale.history import History
from spark_elastic.core.rescale.situation import REPARTITIONED_FORMAT
from spark_elastic.core.rescale.transition_manager import TransitionManager
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.turn import Footing, Timer, Turn

OrderKind = Literal["start", "rescale", "end", "savepoint"]

MOST_ORDERS = 8
"""Orders of one query whose outcome is waited for."""

EXCEPTIONS_KEPT = 16
"""Failures of one query that can still be looked at."""

SAVEPOINTS_KEPT = 16
"""Savepoints of one query that can still be looked at."""


@frozen(kw_only=True)
class PendingOrder:
    """An action whose outcome has not come back yet; `target` is the count it is to bring.

    One that is `replaced` by a newer order may be carried out or not: the newer one's outcome counts. A
    savepoint is to stand in `folder`, which may not lead out of `within`, and is ordered again if it may be
    lost; one with which the query ends is the state's to repeat, and has none.
    """

    action: str
    kind: OrderKind
    target: int | None
    at: int
    replaced: bool = False
    folder: str | None = None
    within: str | None = None


@frozen(kw_only=True)
class RunFailure:
    """A failure of a run, when it was heard of (epoch ms), and what was decided."""

    at: int
    failure: Failure
    reason: str


@frozen(kw_only=True)
class Savepoint:
    """A savepoint, completed at `at` (epoch ms): a folder with all that was committed up to `batch`."""

    at: int
    path: str
    batch: int
    bytes: int


Reaction = Callable[[Any, Any, Any], None] | str
"""What a state does, as a function of the state, the event and the step; or why it leaves the event out."""

Reactions = Mapping[type[Any], Reaction]


@define(kw_only=True)
class State(ABC):
    """What a query is doing, as plain data; `entered` is since when (epoch ms).

    The table of `reactions` names each event that a state can meet, with what it does about it or why it
    leaves it out; anything else is reported as making no sense. A state sets no timers: it says until when it
    waits (`due`), and the machine keeps one timer in step with that, which dies with the state.

    `final` says that nothing more can happen, `starting` that a start is ordered, `ending` that the end is;
    `looks_at_failures_later` that a failure of the run waits for something else.
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
        """The time at which `due_reached` is to be called, None if there is none."""
        return None

    @property
    def moving_until(self) -> int | None:
        """The time until which the query counts as moving its state, None if it does not."""
        return None

    def candidate(self, record: QueryRecord) -> Candidate | None:
        """Return the move of its state that the query waits for, None if there is none."""
        return None

    @abstractmethod
    def enter(self, step: Any) -> None:
        """Begin."""

    def due_reached(self, step: Any) -> None:
        """React to the time that `due` has named."""
        raise AssertionError(f"{self.name} is never due")

    def lets_pass(self, record: QueryRecord, turn: Turn) -> bool:
        """Let other slots pass that make no difference to the query; return whether it has."""
        return False

    def validate(self, record: QueryRecord) -> None:
        """Check the state's own invariants. Raises AssertionError."""
        assert self.entered >= 0

    def handles(self, event: Event) -> bool:
        """Say whether the state does something about such an event."""
        return callable(self.reactions.get(type(event)))

    def leaves_out(self, event: Event) -> bool:
        """Say whether the state leaves such an event out on purpose."""
        return isinstance(self.reactions.get(type(event)), str)


@define(kw_only=True)
class Shares:
    """The slots that a query can use `now`, and those that its state was last told of (`known`).

    `lacks_since` is since when it wants more than it has (epoch ms), None: it has all.
    """

    now: Share = field(factory=Share)
    known: Share = field(factory=Share)
    lacks_since: int | None = None

    def give(self, share: Share, at: int) -> None:
        """Let the query have another share of the slots from `at` (epoch ms) on."""
        self.now = share
        if share.content:
            self.lacks_since = None
        elif self.lacks_since is None:
            self.lacks_since = at


@define(kw_only=True)
class Checkpoint:
    """What the checkpoint of a query has by now; `becomes_rescalable` says that its start changes that."""

    provider: Provider
    format: int
    becomes_rescalable: bool = False

    def note_rescalable(self) -> None:
        """Note that it was begun as one that can be re-partitioned."""
        self.provider = "rocksdb"
        self.format = REPARTITIONED_FORMAT


@define(kw_only=True)
class Failures:
    """How a query has failed: `exceptions` has the newest first, `restarted` counts the starts after one.

    `recovering` is True from a failure until the query runs again; `manager` is how far the wait for a
    rescale had come when it failed, None if it continues elsewhere.
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
    """The moves of a query's state: how many there were, and when the last ones `ended` (epoch ms).

    `moved` is True from a move until a micro-batch with the new count is committed: only after that the state
    is moved again. `failed` is a count that could not be brought about, `cost_ms` what the last rescale took.
    """

    moved: bool = False
    failed: FailedMove = field(factory=FailedMove)
    ended: tuple[int, ...] = ()
    count: int = 0
    cost_ms: int | None = None


@define(kw_only=True)
class Load:
    """What micro-batches took: each count's in `measurements`, the last ones' in `pace`.

    `shuffles` tells whether they have one; if not, `reads` is in how many tasks the sources are to be read,
    None before they follow the slots.
    """

    measurements: Measurements = field(factory=Measurements)
    pace: Pace = field(factory=Pace)
    last_progress: QueryProgress | None = None
    shuffles: ShuffleWatch = field(factory=ShuffleWatch)
    reads: int | None = None


@define(kw_only=True)
class Orders:
    """The orders whose outcome is waited for, by action.

    `aside` has those that concern nothing but how sources are read, with the reason that is told where one
    fails, `keeping` the same for those that keep a text beside the checkpoint.
    """

    pending: dict[str, PendingOrder] = field(factory=dict)
    aside: dict[str, str] = field(factory=dict)
    keeping: dict[str, str] = field(factory=dict)

    def put_aside(self, action: str, reason: str) -> None:
        """Note an order that changes how sources are read."""
        _note(self.aside, action, reason)

    def note_keeping(self, action: str, reason: str) -> None:
        """Note an order to keep a text."""
        _note(self.keeping, action, reason)

    def validate(self) -> None:
        """Check that they are few, and that one rescale at most counts. Raises AssertionError."""
        assert max(len(self.pending), len(self.aside), len(self.keeping)) <= MOST_ORDERS
        assert all(order.action == key for key, order in self.pending.items())
        rescales = [order for order in self.pending.values() if order.kind == "rescale"]
        assert all(order.replaced for order in rescales[:-1])


@define(kw_only=True)
class Told:
    """What was last told of a query: its `decision`, what is told only `once`, what `hold` keeps it.

    `advised` is the last change (before, after, slots) that was only advised.
    """

    decision: Decision | None = None
    once: set[str] = field(factory=set)
    advised: tuple[int | None, int | None, int] | None = None
    hold: tuple[str | int | None, ...] | None = None


@define(kw_only=True)
class QueryRecord:
    """One query: the `state` it is in, the `requirements` it may have, the `timer` for what it waits for.

    `declared` are the requirements that were declared for it; a policy may have narrowed those in force.
    `settings` are its own, None: it has those of the application.
    `run_state` says whether it runs, or where it waits for an answer: held at its start, or failed.
    `partitions` is the count in force, None while unknown; `target` is a count that was ordered and is
    not in force yet. `savepoints` has the newest first, `stayed_ms` how long it was in each state that it has
    left. All times are epoch ms.
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
        """What the query is to those who want slots as well, None: it wants none any more."""
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
        """How the query stands among others."""
        return Footing(self.standing, self.requirements, self.settings, self.state.final)

    @property
    def has_other_slots(self) -> bool:
        """Whether a query that is not over has other slots than its state was told of."""
        return self.shares.now != self.shares.known and not self.state.final

    def declare(self, requirements: Requirements) -> None:
        """Let other requirements be declared for it; those in force follow with `BoundsChanged`."""
        self.declared = requirements

    def reading(self, settings: CoreSettings) -> Reading | None:
        """Tell how its sources are read by these settings, None if its micro-batches may have a shuffle."""
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
        due = self.state.due
        assert (self.timer is None) == (due is None)
        assert self.timer is None or self.timer.at == due


def _note(orders: dict[str, str], action: str, reason: str) -> None:
    """Note an order with what is told where it fails; outcomes can get lost, so the last ones do."""
    orders[action] = reason
    if len(orders) > MOST_ORDERS:
        del orders[next(iter(orders))]


# The order to keep a text beside the checkpoint of a query.


_FAILED = {"bounds": "bounds_not_kept", "batches": "batches_not_kept", "store": "store_not_kept"}


def keep_text(
    record: QueryRecord, name: Literal["bounds", "batches", "store"], text: str | None, turn: Turn
) -> str:
    """Order that a text outlives the driver, None: that none does; return the id of the order."""
    action = turn.next_action()
    record.orders.note_keeping(action, _FAILED[name])
    turn.emit(KeepText(id=action, cause=turn.cause, query=record.facts.query, name=name, text=text))
    return action
