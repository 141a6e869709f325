"""What is known about one query: plain data, changed only by the machine and the state it is in."""

from __future__ import annotations

from typing import Literal

from attrs import define, field, frozen

from spark_elastic.core.actions import Decision
from spark_elastic.core.events import Failure, Phase, Provider, QueryFacts, QueryProgress
from spark_elastic.core.failures.poison import PoisonWatch
from spark_elastic.core.failures.strategy import RestartStrategy
from spark_elastic.core.gain import Measurements
from spark_elastic.core.history import History
from spark_elastic.core.parallelism import REPARTITIONED_FORMAT

OrderKind = Literal["start", "stop", "set", "end", "savepoint"]

EXCEPTIONS_KEPT = 16
"""Failures of one query that can still be looked at."""

SAVEPOINTS_KEPT = 16
"""Savepoints of one query that can still be looked at."""


@frozen(kw_only=True)
class Order:
    """An action whose outcome has not come back yet; `target` is the count it is to bring."""

    action: str
    kind: OrderKind
    target: int | None
    at: int


@frozen(kw_only=True)
class RunFailure:
    """A failure of a run, when it was heard of (epoch ms), and what was made of it."""

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


@define(kw_only=True)
class Record:
    """One query.

    `gate` says where its stream thread is: held at its start, running, stopped for a restart, or ended by a
    failure. `restarted` counts the restarts, `rescaled` those of them that were made for another count.
    `recovering` is True from a failure until the next run has started. `exceptions` has the newest
    failure first, `savepoints` the newest savepoint.
    `partitions` is the count in force, None while unknown; `target` is a count that was ordered and is
    not in force yet. `provider` and `checkpoint_format` are what its checkpoint has by now,
    `becomes_rescalable` says that its start changes them, `began_rescalable` that one has. `paused_since`
    is when the stop for the restart under way was ordered, or the last micro-batch ended after that;
    `restarts` is when the last ones ended. `advised` is the last change (before, after, slots) that was
    only advised. `failed_target` is a count that could not be brought about. All times are epoch ms.
    """

    facts: QueryFacts
    run: str
    gate: Phase
    partitions: int | None
    provider: Provider
    checkpoint_format: int
    history: History
    strategy: RestartStrategy
    poison: PoisonWatch = field(factory=PoisonWatch)
    exceptions: tuple[RunFailure, ...] = ()
    savepoints: tuple[Savepoint, ...] = ()
    recovering: bool = False
    restarted: int = 0
    rescaled: int = 0
    target: int | None = None
    measurements: Measurements = field(factory=Measurements)
    restart_cost_ms: int | None = None
    becomes_rescalable: bool = False
    began_rescalable: bool = False
    paused_since: int | None = None
    restarts: tuple[int, ...] = ()
    failed_target: int | None = None
    orders: dict[str, Order] = field(factory=dict)
    last_progress: QueryProgress | None = None
    last_decision: Decision | None = None
    said: set[str] = field(factory=set)
    advised: tuple[int | None, int | None, int] | None = None
    last_hold: tuple[str | int | None, ...] | None = None

    @property
    def is_stopping(self) -> bool:
        """Whether the outcome of a stop is still to come."""
        return any(order.kind == "stop" for order in self.orders.values())

    def note_rescalable(self) -> None:
        """Note that the checkpoint was begun as one that can be re-partitioned."""
        self.provider = "rocksdb"
        self.checkpoint_format = REPARTITIONED_FORMAT
