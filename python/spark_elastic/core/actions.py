"""What the policy can order of the driver, one class per kind of action.

An action is an order with an id of its own and the id of the event that caused it. Orders are idempotent:
the receiver knows them by their id, and answers each with ``ActionDone`` or ``ActionFailed``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import field, frozen

DecisionKind = Literal[
    "rescale_in_place",
    "rescale_state",
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

    `name` is what the `query` is called, None: it has no name. `reason` is a code of the catalogue and
    `message` its sentence. `numbers` is what was compared,
    `alternatives` what else was looked at, `until` the time (epoch ms) up to which the decision holds by
    itself, None if only an event can end it.
    """

    number: int
    query: str | None = None
    name: str | None = None
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
    `warm_up_ms` is how long a rescale waits at most for the warm-up of executors that join, 0: there is none.
    `restarts` says that failures are to be asked about: without it a query ends with the first.
    `batch_stages` says that somebody goes by what is told of these. `mode` says in the log's words how the
    application is scaled.
    """

    warm_up_ms: int
    start_wait_ms: int
    decision_wait_ms: int
    restarts: bool
    batch_stages: bool
    mode: str


@frozen(kw_only=True)
class TurnOff(Action):
    """End the policy; the application continues as plain Spark."""

    message: str


@frozen(kw_only=True)
class AboutQuery(Action):
    """Is about a query, whichever run it is in; its outcome names it."""

    query: str


@frozen(kw_only=True)
class QueryOrder(AboutQuery):
    """Is for one run of a query: one that comes late, when there is another run, is refused."""

    run: str


def ordered_for(order: Action) -> str | None:
    """Return the query that an order is about, as its outcome names it; None: it is about executors."""
    return order.query if isinstance(order, AboutQuery) else None


@frozen(kw_only=True)
class StartQuery(QueryOrder):
    """Let a query run that waits for an answer, at its start or after a failure.

    `partitions` None leaves the count as it is; with another one than its checkpoint has, the state is moved
    first. `rescalable` makes a new checkpoint one that can be re-partitioned later. `stages` says that what
    its micro-batches run is asked about as other batch stages are.
    """

    partitions: int | None = None
    rescalable: bool = False
    stages: bool = True


@frozen(kw_only=True)
class HoldQuery(QueryOrder):
    """Let a query wait on for its answer, and its status show `message`; `rescalable` as for a start."""

    message: str
    rescalable: bool = False


@frozen(kw_only=True)
class FailQuery(QueryOrder):
    """End a query that waits for an answer; `message` None: with the exception that it has failed with."""

    message: str | None = None


@frozen(kw_only=True)
class CancelQuery(QueryOrder):
    """Stop a query for good, as its application would."""


@frozen(kw_only=True)
class TakeSavepoint(QueryOrder):
    """Copy what a query has committed by its next boundary into a new folder under `target`.

    With `stop` it ends there once the copy is complete, else it runs meanwhile. The copy may not leave the
    folder `within`, whatever links there are. When it is complete the oldest savepoints of the query in
    `target` are removed until `keep` are left; 0: none is.
    """

    target: str
    within: str
    keep: int = 0
    stop: bool = False


@frozen(kw_only=True)
class Rescale(QueryOrder):
    """Give a running query another count: in place, or at its next boundary with its state.

    It takes the place of one that was ordered before and has not been carried out; to the present count it
    calls that off.
    """

    partitions: int


@frozen(kw_only=True)
class SourceBounds:
    """The fewest and the most tasks that read a source in a micro-batch.

    Up to `wanted` there are as many as there is enough to read for: 0 wants none beyond what Spark makes.
    """

    least: int
    most: int
    wanted: int = 0


@frozen(kw_only=True)
class BoundSources(QueryOrder):
    """Keep the sources of a query within bounds, in their order, from its next micro-batch on."""

    sources: tuple[SourceBounds, ...]


@frozen(kw_only=True)
class SourceLimit:
    """The most rows of a source that one micro-batch reads, 0: all that there are."""

    rows: int


@frozen(kw_only=True)
class LimitRows(QueryOrder):
    """Limit what micro-batches read of the sources of a query, in their order, from its next one on.

    Without `sources` nothing is limited. A source that its user has set a limit for keeps that.
    """

    sources: tuple[SourceLimit, ...]


@frozen(kw_only=True)
class KeepText(AboutQuery):
    """Keep a text beside the checkpoint of a query, whichever run it is in; None: remove what is kept.

    There is one of each `name`; the shim alone reads that of the `store`. Of several the last one
    counts, whatever their outcomes' order.
    """

    name: Literal["bounds", "batches", "store"]
    text: str | None


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
    """Wake the scheduler up at `at` (epoch ms) by a ``TimerFired`` event that names the same `query`."""

    timer: str
    at: int
    query: str | None = None


@frozen(kw_only=True)
class CancelTimer(Action):
    """Forget a timer."""

    timer: str


@frozen(kw_only=True)
class Report(Action):
    """Publish a decision."""

    decision: Decision
