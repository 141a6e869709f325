"""The actions that the policy can order from the driver, one class per kind.

An action is an order with its own id and the id of the event that caused it. Orders are idempotent: the
receiver recognizes them by their id, and answers each with ``ActionDone`` or ``ActionFailed``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import field, frozen

StateFormat = Literal["hdfs", "rocksdb-1", "rocksdb-2"]
"""A state store and the format of its checkpoint; Spark's HDFS-backed store has one format."""

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
    """A decision and everything that led to it.

    History, UI, logs and ``explain`` show this and nothing else. `name` is the name of the `query`, None if
    it has none. `reason` is a code of the catalogue and `message` its sentence. `numbers` holds the values
    that were compared, and `alternatives` the other options that were considered. `until` is the time (epoch
    ms) until which the decision holds on its own, None if only an event can end it.
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

    `decision_wait_ms` is the time for which the planning of a batch stage waits for its answer; 0 if the shim
    should not ask. `warm_up_ms` is the longest time that a rescale waits for the warm-up of executors that
    join; 0 for no warm-up. `restarts` makes the shim ask after each failure; without it a query ends with its
    first failure. `batch_stages` says that a policy uses the reports about batch stages. `mode` describes, in
    the wording of the log, how the application is scaled.
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
    """An order about a query, whichever run it is in; the outcome names the query."""

    query: str


@frozen(kw_only=True)
class QueryOrder(AboutQuery):
    """An order for one run of a query; it is refused if it arrives during another run."""

    run: str


def ordered_for(order: Action) -> str | None:
    """Return the query that an order is about, as its outcome names it; None for an order about executors."""
    return order.query if isinstance(order, AboutQuery) else None


@frozen(kw_only=True)
class StartQuery(QueryOrder):
    """Start a query that waits for an answer, initially or after a failure.

    `partitions` None leaves the count as it is. A count other than the checkpoint's moves the state first.
    `rescalable` gives a new checkpoint a form that can be re-partitioned later, and converts an older one to
    it. `stages` says that the shim asks about the stages of its micro-batches as it does for other batch
    stages.
    """

    partitions: int | None = None
    rescalable: bool = False
    stages: bool = True


@frozen(kw_only=True)
class HoldQuery(QueryOrder):
    """Keep a query waiting for its answer, with `message` as its status; `rescalable` as for a start."""

    message: str
    rescalable: bool = False


@frozen(kw_only=True)
class FailQuery(QueryOrder):
    """End a query that waits for an answer; with `message` None it ends with the exception of its failure."""

    message: str | None = None


@frozen(kw_only=True)
class CancelQuery(QueryOrder):
    """Stop a query permanently, as its application would."""


@frozen(kw_only=True)
class TakeSavepoint(QueryOrder):
    """Copy everything that a query has committed by its next boundary into a new folder under `target`.

    With `stop` the query ends there once the copy is complete; otherwise it keeps running meanwhile. The copy
    may not leave the folder `within`, whatever links exist. Its state is rewritten in `format` if that is
    another one than the checkpoint's. Once it is complete, the oldest savepoints of the query in `target` are
    removed until `keep` are left; 0 removes none.
    """

    target: str
    within: str
    format: StateFormat | None = None
    keep: int = 0
    stop: bool = False


@frozen(kw_only=True)
class Rescale(QueryOrder):
    """Give a running query another count: in place, or at its next boundary together with its state.

    It replaces an earlier rescale that has not been carried out yet. A rescale to the present count calls
    that earlier one off.
    """

    partitions: int


@frozen(kw_only=True)
class PrepareMove(QueryOrder):
    """Copy the state of a running query to another count while its micro-batches run, and follow its changes.

    It is done once a rescale to that count only has to switch over. It replaces an earlier preparation; one
    for the same count continues it, and one for the present count drops it. The copy runs at most `tasks`
    tasks at once (at least 1) and keeps to `bytes_per_second` on average, by pauses between tasks; 0 for no
    limit. Until the rescale nothing of the checkpoint has changed. The shim drops a preparation on its own if
    a micro-batch fails or the query ends.
    """

    partitions: int
    tasks: int
    bytes_per_second: int = 0


@frozen(kw_only=True)
class SourceBounds:
    """The minimum and maximum number of tasks that read a source in a micro-batch.

    `wanted` raises the minimum as far as there is enough data to read; 0 asks for no more tasks than Spark
    creates.
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
    """The maximum number of rows that one micro-batch reads from a source; 0 for no limit."""

    rows: int


@frozen(kw_only=True)
class LimitRows(QueryOrder):
    """Limit the rows that micro-batches read from a query's sources, in their order, from the next one on.

    Without `sources` nothing is limited. A source keeps a limit that its user has set.
    """

    sources: tuple[SourceLimit, ...]


@frozen(kw_only=True)
class KeepText(AboutQuery):
    """Keep a text beside the checkpoint of a query, whichever run it is in; None removes the kept text.

    There is one text per `name`; only the shim reads the one named `store`. Of several orders the last one
    counts, whatever the order of their outcomes.
    """

    name: Literal["bounds", "batches", "store"]
    text: str | None


@frozen(kw_only=True)
class DropOriginal(AboutQuery):
    """Delete what is kept of a query's state from before it was converted."""


@frozen(kw_only=True)
class RequestExecutors(Action):
    """Ask the cluster for `total` executors."""

    total: int


@frozen(kw_only=True)
class KillExecutors(Action):
    """End executors immediately."""

    executors: tuple[str, ...]


@frozen(kw_only=True)
class DecommissionExecutors(Action):
    """Let executors finish their tasks and migrate their data."""

    executors: tuple[str, ...]


@frozen(kw_only=True)
class SetTimer(Action):
    """Wake the scheduler at `at` (epoch ms) with a ``TimerFired`` event that names the same `query`."""

    timer: str
    at: int
    query: str | None = None


@frozen(kw_only=True)
class CancelTimer(Action):
    """Cancel a timer."""

    timer: str


@frozen(kw_only=True)
class Report(Action):
    """Publish a decision."""

    decision: Decision
