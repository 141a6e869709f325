"""Everything the policy can order, one class per kind of action.

An action is an order with an id of its own and the id of the event that caused it. Orders are idempotent:
the receiver knows them by their id, and answers each with ``ActionDone`` or ``ActionFailed``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import field, frozen

DecisionKind = Literal[
    "rescale_in_place",
    "rescale_restart",
    "start",
    "stage",
    "held",
    "nothing_to_do",
    "finished",
    "failed",
    "info",
]


@frozen(kw_only=True)
class Decision:
    """A decision with all that led to it: history, UI, logs and ``explain`` show this and nothing else.

    `reason` is a code of the catalogue and `message` its sentence. `numbers` is what was compared,
    `alternatives` what else was looked at, `until` the time (epoch ms) up to which the decision holds by
    itself, None if only an event can end it.
    """

    number: int
    query: str | None = None
    at: int
    kind: DecisionKind
    reason: str
    message: str
    cause: str
    before: int | None = None
    after: int | None = None
    numbers: Mapping[str, float | int | str] = field(factory=dict)
    alternatives: tuple[str, ...] = ()
    until: int | None = None


@frozen(kw_only=True)
class Action:
    """An order: `cause` is the id of the event that led to it."""

    id: str
    cause: str


@frozen(kw_only=True)
class Configure(Action):
    """Tell the shim its limits; the first answer to a snapshot.

    `decision_wait_ms` is how long the planning of a batch stage waits for its answer, 0: nothing is asked.
    `warm_up_ms` is how long a restart waits at most for the warm-up of executors that join, 0: there is none.
    `restarts` says that runs that fail are to be asked about: without it their queries end at once.
    """

    warm_up_ms: int
    hang_ms: int
    start_wait_ms: int
    decision_wait_ms: int
    restarts: bool


@frozen(kw_only=True)
class TurnOff(Action):
    """End the policy; the application goes on as plain Spark."""

    message: str


@frozen(kw_only=True)
class StartQuery(Action):
    """Let a held or stopped query run.

    `partitions` None leaves the count as it is. `repartition` moves the state of its checkpoint to
    `partitions` first. `rescalable` makes a new checkpoint one that can be re-partitioned later.
    """

    query: str
    partitions: int | None = None
    repartition: bool = False
    rescalable: bool = False


@frozen(kw_only=True)
class HoldQuery(Action):
    """Keep a submitted query at the gate; the application gets its handle, whose status shows `message`."""

    query: str
    message: str


@frozen(kw_only=True)
class StopQuery(Action):
    """Stop a query at its next micro-batch boundary; its handle lives, and waits for a start or an end.

    A micro-batch that has not ended after `grace_ms` is interrupted.
    """

    query: str
    grace_ms: int


@frozen(kw_only=True)
class FailQuery(Action):
    """End a query that has failed or waits for its start; `message` None: with its run's own exception."""

    query: str
    message: str | None = None


@frozen(kw_only=True)
class CancelQuery(Action):
    """Stop a query for good, as its application would."""

    query: str


@frozen(kw_only=True)
class TakeSavepoint(Action):
    """Copy what a query has committed into a new folder under `target`, while it goes on or is stopped."""

    query: str
    target: str


@frozen(kw_only=True)
class SetParallelism(Action):
    """Change the count of a running query; in force from its next micro-batch."""

    query: str
    partitions: int


@frozen(kw_only=True)
class SourceBounds:
    """The fewest and the most tasks that read a source in a micro-batch."""

    least: int
    most: int


@frozen(kw_only=True)
class BoundSources(Action):
    """Keep the sources of a query within bounds, in their order, from its next micro-batch on."""

    query: str
    sources: tuple[SourceBounds, ...]


@frozen(kw_only=True)
class RequestExecutors(Action):
    """Ask the cluster for `total` executors."""

    total: int


@frozen(kw_only=True)
class KillExecutors(Action):
    """End executors at once."""

    executors: tuple[str, ...]


@frozen(kw_only=True)
class DecommissionExecutors(Action):
    """Let executors finish what they run and move away what they hold."""

    executors: tuple[str, ...]


@frozen(kw_only=True)
class SetTimer(Action):
    """Wake the scheduler up at `at` (epoch ms) by a ``TimerFired`` event."""

    timer: str
    at: int


@frozen(kw_only=True)
class CancelTimer(Action):
    """Forget a timer."""

    timer: str


@frozen(kw_only=True)
class Report(Action):
    """Publish a decision."""

    decision: Decision


ACTION_TYPES: tuple[type[Action], ...] = (
    Configure,
    TurnOff,
    StartQuery,
    HoldQuery,
    StopQuery,
    FailQuery,
    CancelQuery,
    TakeSavepoint,
    SetParallelism,
    BoundSources,
    RequestExecutors,
    KillExecutors,
    DecommissionExecutors,
    SetTimer,
    CancelTimer,
    Report,
)
