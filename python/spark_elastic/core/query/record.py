"""What is known about one query: plain data, changed only by the machine and the state it is in."""

from __future__ import annotations

from typing import Literal

from attrs import define, field, frozen

from spark_elastic.core.actions import Decision
from spark_elastic.core.events import Phase, Provider, QueryFacts, QueryProgress
from spark_elastic.core.gain import Measurements
from spark_elastic.core.history import History
from spark_elastic.core.parallelism import REPARTITIONED_FORMAT

OrderKind = Literal["start", "stop", "set"]


@frozen(kw_only=True)
class Order:
    """An action whose outcome has not come back yet; `target` is the count it is to bring."""

    action: str
    kind: OrderKind
    target: int | None
    at: int


@define(kw_only=True)
class Record:
    """One query.

    `gate` says where its stream thread is: held at its start, running, or stopped for a restart.
    `partitions` is the count in force, None while unknown; `target` is a count that was ordered and is
    not in force yet. `provider` and `checkpoint_format` are what its checkpoint has by now,
    `becomes_rescalable` that its start changes them. `stop_ordered` is when the restart under way began,
    `restarts` when the last ones ended. `advised` is the last change (before, after, slots) that was only
    advised. `failed_target` is a count that could not be brought about. All times are epoch ms.
    """

    facts: QueryFacts
    run: str
    gate: Phase
    partitions: int | None
    provider: Provider
    checkpoint_format: int
    history: History
    target: int | None = None
    measurements: Measurements = field(factory=Measurements)
    restart_cost_ms: int | None = None
    becomes_rescalable: bool = False
    stop_ordered: int | None = None
    restarts: tuple[int, ...] = ()
    failed_target: int | None = None
    orders: dict[str, Order] = field(factory=dict)
    last_progress: QueryProgress | None = None
    last_decision: Decision | None = None
    said: set[str] = field(factory=set)
    advised: tuple[int | None, int | None, int] | None = None
    last_hold: tuple[str | int | None, ...] | None = None

    def note_rescalable(self) -> None:
        """Note that the checkpoint was begun as one that can be re-partitioned."""
        self.provider = "rocksdb"
        self.checkpoint_format = REPARTITIONED_FORMAT
