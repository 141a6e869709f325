"""What the policy is told, one class per kind of fact; `task_events.py` and `batch_events.py` have more.

An event is a fact of the past: it says what happened, not what to do about it. Each carries the id under
which the sender counted it and the time at which it happened. The outcome of an action comes back as an
event like any other. All times are epoch milliseconds, all names that end in ``_ms`` are durations in ms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import field, frozen

from spark_elastic.core.bounds.declared import NOTHING_WANTED, WantedBounds, WantedSharing

# What a micro-batch has read of a source.


@frozen(kw_only=True)
class FullestPartition:
    """Name the partition of a source that had the most rows to be read when a micro-batch began.

    It had `rows` of `all_rows`, in so many `partitions`.
    """

    name: str
    rows: int
    all_rows: int
    partitions: int

    @property
    def share(self) -> float:
        """The share of the rows that it had, from 0 to 1."""
        return self.rows / self.all_rows if self.all_rows > 0 else 0.0


@frozen(kw_only=True)
class SourceRead:
    """Count the rows that a micro-batch has read of a source, and its tasks, None if that is not known.

    `whole` says that there could be no more tasks: each had a file, none of which can be split. `fullest` is
    None where the offsets of a source do not tell partitions apart.
    """

    rows: int
    tasks: int | None = None
    whole: bool = False
    fullest: FullestPartition | None = None


Trigger = Literal["processing_time", "available_now", "once", "continuous", "real_time"]
Provider = Literal["rocksdb", "hdfs", "other"]
RunState = Literal["held", "running", "failed"]


@frozen(kw_only=True)
class ExecutorInfo:
    """Describe one executor of a snapshot."""

    executor: str
    host: str
    cores: int
    excluded: bool = False
    decommissioning: bool = False


@frozen(kw_only=True)
class SourceFacts:
    """Describe one source of a query; a `divisible` one can be read in more tasks than Spark makes of it.

    The records of an `ordered` one have an order within what Spark makes one task of. A `limitable` one can
    be told how many rows a micro-batch reads, and its user has not done so.
    """

    name: str
    divisible: bool = False
    ordered: bool = False
    limitable: bool = False


@frozen(kw_only=True)
class QueryFacts:
    """Describe what does not change about a streaming query between two starts of it.

    `global_state` says that it has an operator without keys, such as ``groupBy().count()`` or ``limit``:
    Spark keeps the state of such a one in a single partition, whatever the count.
    `trigger_ms` is 0 when the query runs as fast as it can. `explicit_partitions` is the user's own
    ``spark.sql.shuffle.partitions``, None if the user did not set one. `checkpoint_partitions` is None for a
    new checkpoint. One is `pending` if its last batch was started and not committed: that batch has to run
    before the state can be re-partitioned. `sources` are in the order in which the checkpoint numbers them.
    `moves_state` says that this Spark can re-partition state, whatever the checkpoint.
    `kept_bounds` and `kept_batches` are the texts that ``KeepText`` has left beside the checkpoint.
    """

    query: str
    name: str | None = None
    stateful: bool
    global_state: bool = False
    trigger: Trigger
    trigger_ms: int
    session_partitions: int
    explicit_partitions: int | None = None
    provider_chosen: bool
    provider: Provider
    checkpoint_format: int
    checkpoint_partitions: int | None = None
    pending: bool = False
    in_place: bool
    moves_state: bool = True
    sources: tuple[SourceFacts, ...] = ()
    kept_bounds: str | None = None
    kept_batches: str | None = None


@frozen(kw_only=True)
class Failure:
    """Describe why a run failed.

    `error` is the message of the innermost cause, `error_class` Spark's name of the condition if one of the
    causes has one, `causes` their classes from the outermost on, `of_io` whether one of them is an
    IOException of whatever class, `offsets` up to where its batch was to read.
    """

    error: str
    error_class: str | None = None
    causes: tuple[str, ...] = ()
    of_io: bool = False
    offsets: str = ""


@frozen(kw_only=True)
class QueryInfo:
    """Describe one query of a snapshot.

    A query is `held` before its first micro-batch and `failed` after a failed one: it waits for an answer.
    `partitions` is the count in force, None while it is held; `failure` is there if it is failed.
    """

    facts: QueryFacts
    run: str
    run_state: RunState
    partitions: int | None = None
    failure: Failure | None = None


@frozen(kw_only=True)
class Event:
    """A fact: `id` is unique within its sender, `at` is when it happened."""

    id: str
    at: int


@frozen(kw_only=True)
class Snapshot(Event):
    """The world as it is: the first event of a process, and the only one that is not a change.

    `parts` has what the shim can do: by the name of each part why it is off, "" if it is on. Empty: not told.
    """

    application: str
    application_name: str
    spark_version: str
    conf: Mapping[str, str] = field(factory=dict)
    executors: tuple[ExecutorInfo, ...] = ()
    queries: tuple[QueryInfo, ...] = ()
    parts: Mapping[str, str] = field(factory=dict)


@frozen(kw_only=True)
class ExecutorEvent(Event):
    """A fact about one executor that may change the slots."""

    executor: str


@frozen(kw_only=True)
class ExecutorAdded(ExecutorEvent):
    """An executor has registered with the driver."""

    host: str
    cores: int


@frozen(kw_only=True)
class ExecutorRemoved(ExecutorEvent):
    """An executor is gone, whatever the reason."""

    reason: str = ""


@frozen(kw_only=True)
class ExecutorExcluded(ExecutorEvent):
    """Spark gives no more tasks to an executor that failed too often; `reason` says what failed, as shown."""

    reason: str = ""


@frozen(kw_only=True)
class ExecutorUnexcluded(ExecutorEvent):
    """Spark gives tasks to an excluded executor again."""


@frozen(kw_only=True)
class ExecutorDecommissioning(ExecutorEvent):
    """An executor finishes what it runs and takes nothing new; Spark does not say who wanted that."""


@frozen(kw_only=True)
class ExecutorUsage(Event):
    """What would be lost with an executor: cached blocks, shuffle data of batch jobs that are not over."""

    executor: str
    cached_bytes: int
    shuffle_bytes: int


@frozen(kw_only=True)
class QueryEvent(Event):
    """A fact about one run of one query."""

    query: str
    run: str


@frozen(kw_only=True)
class QuerySubmitted(Event):
    """A query is about to begin and waits for an answer."""

    facts: QueryFacts
    run: str

    @property
    def query(self) -> str:
        """Name the query that was submitted."""
        return self.facts.query


@frozen(kw_only=True)
class QueryStarted(QueryEvent):
    """A query has had its answer, at its start or after a failure, and runs with `partitions`."""

    partitions: int


@frozen(kw_only=True)
class OffsetsBehind:
    """How many records the partitions of a source have that a query has not read: mean, most and least."""

    avg: float
    max: int
    min: int


@frozen(kw_only=True)
class QueryProgress(QueryEvent):
    """A micro-batch was committed.

    `started` is when the batch began. `partitions` is the count in force in this batch. `offsets_behind` is
    that of the source with the partition furthest behind (records of different sources are not added up),
    None if no source says it; `records_behind` are those of all partitions of the sources that say it.
    `event_time_lag_ms` is from the newest event time that was read to the begin of the batch, None without a
    watermark or without rows. `sources` are in the order of the facts. `merged` counts earlier progress that
    the sender has folded into this one; `sources` are those of the last.
    """

    batch: int
    started: int
    duration_ms: int
    input_rows: int = 0
    input_rows_per_second: float = 0.0
    processed_rows_per_second: float = 0.0
    state_rows: int = 0
    state_bytes: int = 0
    partitions: int
    offsets_behind: OffsetsBehind | None = None
    records_behind: int | None = None
    event_time_lag_ms: int | None = None
    sources: tuple[SourceRead, ...] = ()
    merged: int = 0

    @property
    def source_tasks(self) -> int | None:
        """The tasks that read its sources, None if that is not known of all that had rows."""
        tasks = [source.tasks for source in self.sources if source.tasks is not None or source.rows]
        return None if None in tasks or not tasks else sum(number for number in tasks if number is not None)

    @property
    def fullest(self) -> FullestPartition | None:
        """The partition that had the largest share of what its source had, None if no source tells."""
        told = [source.fullest for source in self.sources if source.fullest is not None]
        return max(told, key=lambda one: one.share, default=None)

    @property
    def whole(self) -> bool:
        """Whether all that it has read was in files that can't be split, so that no more tasks were had."""
        read = [source for source in self.sources if source.rows]
        return bool(read) and all(source.whole for source in read)


@frozen(kw_only=True)
class QueryIdle(QueryEvent):
    """A query has had nothing to read for ``spark.sql.streaming.noDataProgressEventInterval``; said again."""


@frozen(kw_only=True)
class QueryFailed(QueryEvent):
    """A micro-batch has failed; the query waits for another start, or for its end."""

    failure: Failure


@frozen(kw_only=True)
class QueryTerminated(QueryEvent):
    """A query is over: `error` is None if it was stopped or came to its end.

    `error_class` is Spark's name of the condition that has ended it, None if it has none.
    """

    error: str | None = None
    error_class: str | None = None


@frozen(kw_only=True)
class ActionOutcome(Event):
    """What became of an order: `action` is its id, `query` whom it was for, None for one about executors."""

    action: str
    query: str | None = None


@frozen(kw_only=True)
class ActionDone(ActionOutcome):
    """The action has been carried out, in `took_ms`."""

    took_ms: int


@frozen(kw_only=True)
class ActionFailed(ActionOutcome):
    """The action could not be carried out, and nothing has changed by it."""

    error: str


@frozen(kw_only=True)
class SavepointTaken(ActionOutcome):
    """The savepoint that was ordered stands in the folder `path`: all that was committed up to `batch`."""

    query: str
    run: str
    path: str
    batch: int
    bytes: int


@frozen(kw_only=True)
class SavepointRequested(Event):
    """Somebody (`by`) wants a savepoint of a query, and the query to `stop` with it or to continue.

    It is to stand in a new folder under `target` (a path, or a URI of a Hadoop file system), None: under
    ``spark.elastic.savepointDir``. No link may lead it out of `within`, None: out of the target.
    """

    query: str
    by: str
    target: str | None = None
    within: str | None = None
    stop: bool = False


@frozen(kw_only=True)
class CancelRequested(Event):
    """Somebody (`by`) wants a query to end."""

    query: str
    by: str


@frozen(kw_only=True)
class RequirementsRequested(Event):
    """Somebody (`by`) has set a query's bounds: lower and upper by vertex, checked and without -1.

    `targets` has those of vertices with one.
    """

    query: str
    bounds: Mapping[str, tuple[int, int]]
    by: str
    targets: Mapping[str, int] = field(factory=dict)


@frozen(kw_only=True)
class RequirementsDropped(Event):
    """Somebody (`by`) has taken back what was requested: settings and policy file count again."""

    query: str
    by: str


@frozen(kw_only=True)
class TimerFired(Event):
    """A timer that was set has come due: the one of a `query`, None for that of the executors."""

    timer: str
    query: str | None = None


@frozen(kw_only=True)
class PolicyFileChanged(Event):
    """The policy file at `path` says something new, or was read for the first time.

    `bounds` is by name of the query (or pattern of names) and vertex, `sharing` by name, `settings` by name
    and key. Where they say nothing, the defaults do; None is nothing.
    """

    path: str
    defaults: WantedBounds | None = None
    bounds: Mapping[str, Mapping[str, WantedBounds]] = field(factory=dict)
    default_sharing: WantedSharing = NOTHING_WANTED
    sharing: Mapping[str, WantedSharing] = field(factory=dict)
    default_settings: Mapping[str, str] = field(factory=dict)
    settings: Mapping[str, Mapping[str, str]] = field(factory=dict)


@frozen(kw_only=True)
class PolicyFileRefused(Event):
    """The policy file at `path` cannot be used: what it said before stays in force."""

    path: str
    errors: tuple[str, ...]


# What the tasks of stages took: a part of what is told of one, and of a micro-batch.


@frozen(kw_only=True)
class StageWork:
    """What the tasks of a stage took: `run_ms` all of them together, `gc_ms` of it for garbage collection.

    `spilled_bytes` is what did not fit into memory and went to disk. The longest task ran for `longest_ms`,
    half of them for `median_ms` or less.
    """

    run_ms: int
    gc_ms: int
    spilled_bytes: int
    longest_ms: int
    median_ms: int

    def __add__(self, other: StageWork) -> StageWork:
        """Add up stages that ran one after the other."""
        return StageWork(
            run_ms=self.run_ms + other.run_ms,
            gc_ms=self.gc_ms + other.gc_ms,
            spilled_bytes=self.spilled_bytes + other.spilled_bytes,
            longest_ms=self.longest_ms + other.longest_ms,
            median_ms=self.median_ms + other.median_ms,
        )


# What the policy is told of the stages and tasks of micro-batches.


@frozen(kw_only=True)
class TaskEvent(Event):
    """What the tasks of a query's micro-batches have told."""

    query: str


@frozen(kw_only=True)
class StageCompleted(TaskEvent):
    """A stage of a micro-batch that reads a shuffle is done: so many tasks were over in `duration_ms`.

    `work` is what they took, None if that is not known. Stages of one micro-batch that have as many tasks may
    come as one, with their durations and their work added up.
    """

    batch: int
    tasks: int
    duration_ms: int
    work: StageWork | None = None


@frozen(kw_only=True)
class NewExecutor:
    """Describe an executor that has `joined`, and on which a query's first task was `launched` (epoch ms).

    `warm_up_ms` is what its warm-up took, None: it had none by then that was over and had succeeded.
    """

    executor: str
    joined: int
    launched: int
    warm_up_ms: int | None = None


@frozen(kw_only=True)
class ExecutorsUsed(TaskEvent):
    """Executors that have joined have begun with micro-batches of a query."""

    executors: tuple[NewExecutor, ...]


# What the policy is told of batch stages: those of jobs that belong to no streaming query.


@frozen(kw_only=True)
class BatchStage:
    """Describe one stage that has been submitted and is not over.

    Of its `tasks`, `done` are over and took `run_ms` together; `running` run. The first began at `launched`
    (epoch ms), None: none has. `bytes` are what the shuffles before it have written for it, None if it reads
    anything else; of these the tasks that are done have read `read_bytes`. They have written `written_bytes`
    for stages after it.
    """

    stage: int
    tasks: int
    done: int = 0
    running: int = 0
    run_ms: int = 0
    launched: int | None = None
    bytes: int | None = None
    read_bytes: int = 0
    written_bytes: int = 0

    @property
    def left(self) -> int:
        """The tasks that are not over, running ones among them."""
        return max(0, self.tasks - self.done)

    @property
    def waiting(self) -> int:
        """The tasks that have not begun."""
        return max(0, self.left - self.running)


@frozen(kw_only=True)
class BatchStages(Event):
    """All batch stages of now, at most once a second; none when the last one is over.

    `over` counts those that have ended since the last time; one that came and went in between is told of by
    nothing else. `idle` are the executors on which no task of these stages runs; without a stage they are not
    named.
    """

    stages: tuple[BatchStage, ...] = ()
    idle: tuple[str, ...] = ()
    over: int = 0
