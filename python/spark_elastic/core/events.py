"""The facts that the policy receives, one class per kind.

An event is a fact of the past: it reports what happened, not what to do about it. Each carries the id under
which the sender counted it and the time at which it happened. The outcome of an action comes back as an event
like any other. All times are epoch milliseconds; all names that end in ``_ms`` are durations in ms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import field, frozen

from spark_elastic.core.actions import StateFormat
from spark_elastic.core.bounds.declared import NOTHING_WANTED, WantedBounds, WantedSharing

# ---- The data that a micro-batch has read from a source.


@frozen(kw_only=True)
class FullestPartition:
    """The partition of a source that had the most rows to read when a micro-batch began.

    It had `rows` of the `all_rows` that were spread over `partitions` partitions.
    """

    name: str
    rows: int
    all_rows: int
    partitions: int

    @property
    def share(self) -> float:
        """Its share of the rows, from 0 to 1."""
        return self.rows / self.all_rows if self.all_rows > 0 else 0.0


@frozen(kw_only=True)
class SourceRead:
    """The rows that a micro-batch has read from a source, and its tasks, None if unknown.

    `whole` says that more tasks were impossible: each had one file that cannot be split. `fullest` is None
    where the offsets of a source do not distinguish partitions.
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
    """One executor of a snapshot."""

    executor: str
    host: str
    cores: int
    excluded: bool = False
    decommissioning: bool = False


@frozen(kw_only=True)
class SourceFacts:
    """One source of a query; a `divisible` one can be read in more tasks than Spark creates.

    The records of an `ordered` one have an order within each task that Spark creates. A `limitable` one
    accepts a limit on the rows per micro-batch, and its user has not set one.
    """

    name: str
    divisible: bool = False
    ordered: bool = False
    limitable: bool = False


@frozen(kw_only=True)
class QueryFacts:
    """The facts about a streaming query, most of which do not change between two starts of it.

    `global_state` says that it has an operator without keys, such as ``groupBy().count()`` or ``limit``:
    Spark keeps the state of such an operator in a single partition, whatever the count. `trigger_ms` is 0
    when the query runs as fast as it can. `explicit_partitions` is the user's own
    ``spark.sql.shuffle.partitions``, None if unset. `checkpoint_partitions` is None for a new checkpoint.
    `pending` says that the last batch of the checkpoint was started but not committed: that batch has to run
    before the state can be re-partitioned. `sources` are in the order in which the checkpoint numbers them.
    `moves_state` says that this Spark can re-partition state, whatever the checkpoint, and `prepares_moves`
    that it can copy the state of this query beside its micro-batches: RocksDB with changelogs, format 2 and
    no checksums of rows. `kept_bounds` and `kept_batches` are the texts that ``KeepText`` has left beside the
    checkpoint. `provider_chosen` says that the store stays as it is, and `store_needed` that its code works
    in Spark's own store alone, whatever its user has set. `original_since` is when a converted state has
    first committed a micro-batch (epoch ms), 0 if it has not, None if no original of it is kept.
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
    store_needed: bool = False
    provider: Provider
    checkpoint_format: int
    checkpoint_partitions: int | None = None
    pending: bool = False
    in_place: bool
    moves_state: bool = True
    prepares_moves: bool = False
    sources: tuple[SourceFacts, ...] = ()
    kept_bounds: str | None = None
    kept_batches: str | None = None
    original_since: int | None = None


@frozen(kw_only=True)
class Failure:
    """The failure of a run.

    `error` is the message of the innermost cause. `error_class` is Spark's name of the error condition if one
    of the causes has one. `causes` are the classes of the causes, the outermost first. `of_io` says that one
    of them is an IOException or a subclass. `offsets` is the end of the range that its batch was planned to
    read.
    """

    error: str
    error_class: str | None = None
    causes: tuple[str, ...] = ()
    of_io: bool = False
    offsets: str = ""


@frozen(kw_only=True)
class QueryInfo:
    """One query of a snapshot.

    A query is `held` before its first micro-batch and `failed` after a failed one: it waits for an answer.
    `partitions` is the count in force, None while it is held; `failure` is set if it has failed.
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
    """The current state of the world: the first event of a process, and the only one that is not a change.

    `parts` has the parts of the shim by name, each with the reason why it is off, "" if it is on. It is empty
    if the shim has not reported them.
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
    """Spark gives no more tasks to an executor that failed too often; `reason` is the displayed failure."""

    reason: str = ""


@frozen(kw_only=True)
class ExecutorUnexcluded(ExecutorEvent):
    """Spark gives tasks to an excluded executor again."""


@frozen(kw_only=True)
class ExecutorDecommissioning(ExecutorEvent):
    """An executor finishes its tasks and accepts no new ones; Spark does not report who requested that."""


@frozen(kw_only=True)
class ExecutorUsage(Event):
    """Data that would be lost with an executor: cached blocks, shuffle data of unfinished batch jobs."""

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
        """The query that was submitted."""
        return self.facts.query


@frozen(kw_only=True)
class QueryStarted(QueryEvent):
    """A query has had its answer, initially or after a failure, and runs with `partitions`."""

    partitions: int


@frozen(kw_only=True)
class OffsetsBehind:
    """Unread records per partition of a source: mean, maximum and minimum."""

    avg: float
    max: int
    min: int


@frozen(kw_only=True)
class QueryProgress(QueryEvent):
    """A micro-batch was committed.

    `started` is when the batch began. `partitions` is the count in force in this batch. `offsets_behind` is
    that of the source with the partition furthest behind (records of different sources are not added up),
    None if no source reports it. `records_behind` is the sum over all partitions of the sources that report
    it. `event_time_lag_ms` is the time from the newest event time that was read to the start of the batch,
    None without a watermark or without rows. `sources` are in the order of the facts. `merged` counts earlier
    progress that the sender has folded into this one; `sources` are those of the last.
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
        """The number of tasks that read its sources, None if unknown for any source that had rows."""
        tasks = [source.tasks for source in self.sources if source.tasks is not None or source.rows]
        return None if None in tasks or not tasks else sum(number for number in tasks if number is not None)

    @property
    def fullest(self) -> FullestPartition | None:
        """The partition with the largest share of its source's rows, None if no source reports one."""
        told = [source.fullest for source in self.sources if source.fullest is not None]
        return max(told, key=lambda one: one.share, default=None)

    @property
    def whole(self) -> bool:
        """Whether it read only files that cannot be split, so that more tasks were impossible."""
        read = [source for source in self.sources if source.rows]
        return bool(read) and all(source.whole for source in read)


@frozen(kw_only=True)
class BatchPlanned(QueryEvent):
    """A micro-batch is about to read its sources.

    It will read `input_rows`, None if a source does not say how many; 0 in one that only removes old state.
    `records_behind` is the number of rows that the sources have beyond these, None if none of them reports
    it.
    """

    batch: int
    input_rows: int | None = None
    records_behind: int | None = None


@frozen(kw_only=True)
class QueryIdle(QueryEvent):
    """A query has had nothing to read for ``spark.sql.streaming.noDataProgressEventInterval``; repeated."""


@frozen(kw_only=True)
class QueryFailed(QueryEvent):
    """A micro-batch has failed; the query waits for another start, or for its end."""

    failure: Failure


@frozen(kw_only=True)
class QueryTerminated(QueryEvent):
    """A query has ended: `error` is None if it was stopped or ran to completion.

    `error_class` is Spark's name of the error condition that ended it, None if it has none.
    """

    error: str | None = None
    error_class: str | None = None


@frozen(kw_only=True)
class ActionOutcome(Event):
    """The outcome of an order: `action` is its id, `query` its query, None for an order about executors."""

    action: str
    query: str | None = None


@frozen(kw_only=True)
class ActionDone(ActionOutcome):
    """The action has been carried out, in `took_ms`.

    For a rescale that is the pause. One that was `prepared` only had to switch over; if the preparation broke
    at the last moment, the state was moved in the pause.
    """

    took_ms: int
    prepared: bool = False


@frozen(kw_only=True)
class ActionFailed(ActionOutcome):
    """The action could not be carried out, and has changed nothing."""

    error: str


@frozen(kw_only=True)
class SavepointTaken(ActionOutcome):
    """The ordered savepoint is in the folder `path`: everything that was committed up to `batch`."""

    query: str
    run: str
    path: str
    batch: int
    bytes: int


@frozen(kw_only=True)
class SavepointRequested(Event):
    """A client (`by`) has requested a savepoint of a query; with `stop` the query ends with it.

    The savepoint goes into a new folder under `target` (a path, or a URI of a Hadoop file system), None:
    under ``spark.elastic.savepointDir``. No link may lead it out of `within`, None: out of the target. Its
    state gets a `format`, None: the one that the checkpoint has.
    """

    query: str
    by: str
    target: str | None = None
    within: str | None = None
    format: StateFormat | None = None
    stop: bool = False


@frozen(kw_only=True)
class CancelRequested(Event):
    """A client (`by`) has requested the end of a query."""

    query: str
    by: str


@frozen(kw_only=True)
class RequirementsRequested(Event):
    """A client (`by`) has set a query's bounds: lower and upper by vertex, checked and without -1.

    `targets` has the targets of the vertices with one.
    """

    query: str
    bounds: Mapping[str, tuple[int, int]]
    by: str
    targets: Mapping[str, int] = field(factory=dict)


@frozen(kw_only=True)
class RequirementsDropped(Event):
    """A client (`by`) has withdrawn its request: settings and policy file count again."""

    query: str
    by: str


@frozen(kw_only=True)
class TimerFired(Event):
    """A timer has fired: that of a `query`, or with None one of the executor supply or the planner."""

    timer: str
    query: str | None = None


@frozen(kw_only=True)
class PolicyFileChanged(Event):
    """The policy file at `path` has changed, or was read for the first time.

    `bounds` is by name of the query (or pattern of names) and vertex, `sharing` by name, `settings` by name
    and key. The defaults apply where these have no entry. A default of None sets nothing.
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
    """The policy file at `path` cannot be used: its previous content stays in force."""

    path: str
    errors: tuple[str, ...]


# ---- Work of the tasks of stages: part of the reports about a stage, and about a micro-batch.


@frozen(kw_only=True)
class StageWork:
    """Work of the tasks of a stage: `run_ms` in total, including `gc_ms` of garbage collection.

    `spilled_bytes` is the data that did not fit into memory and went to disk. The longest task ran for
    `longest_ms`, half of them for `median_ms` or less.
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


# ---- Events about the stages and tasks of micro-batches.


@frozen(kw_only=True)
class TaskEvent(Event):
    """A report about the tasks of a query's micro-batches."""

    query: str


@frozen(kw_only=True)
class StageCompleted(TaskEvent):
    """A stage of a micro-batch that reads a shuffle has completed: all its `tasks` took `duration_ms`.

    `work` is the work of the tasks, None if unknown. Stages of one micro-batch with the same number of tasks
    may be reported as one, with their durations and their work added up.
    """

    batch: int
    tasks: int
    duration_ms: int
    work: StageWork | None = None


@frozen(kw_only=True)
class NewExecutor:
    """An executor that `joined`, and on which a query's first task was `launched` (epoch ms).

    `warm_up_ms` is the duration of its warm-up, None if none had completed successfully by then.
    """

    executor: str
    joined: int
    launched: int
    warm_up_ms: int | None = None


@frozen(kw_only=True)
class ExecutorsUsed(TaskEvent):
    """Executors that have joined run their first tasks of a query's micro-batches."""

    executors: tuple[NewExecutor, ...]


# ---- Events about batch stages: those of jobs that belong to no streaming query.


@frozen(kw_only=True)
class BatchStage:
    """One stage that has been submitted and has not ended.

    Of its `tasks`, `done` have ended and took `run_ms` in total; `running` run. The first began at `launched`
    (epoch ms), None if none has begun. `bytes` is the data that the shuffles before it have written for it,
    None if it reads anything else; the finished tasks have read `read_bytes` of it. They have written
    `written_bytes` for later stages.
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
        """The number of tasks that have not ended, including running ones."""
        return max(0, self.tasks - self.done)

    @property
    def waiting(self) -> int:
        """The number of tasks that have not begun."""
        return max(0, self.left - self.running)


@frozen(kw_only=True)
class BatchStages(Event):
    """All current batch stages, at most once a second; none when the last one has ended.

    `over` counts the stages that have ended since the last report; a stage that started and ended in between
    appears only there. `idle` are the executors that run no task of these stages; they are not named when
    there is no stage.
    """

    stages: tuple[BatchStage, ...] = ()
    idle: tuple[str, ...] = ()
    over: int = 0
