"""The answers of the API, each member with its schema and its value; the description follows from them.

All times are epoch ms; names that end in `Ms` are durations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from attrs import frozen

from spark_elastic.core.actions import Decision, DecisionKind
from spark_elastic.core.batch.questions import QUESTION_TYPES
from spark_elastic.core.bounds.requirements import source_vertex
from spark_elastic.core.events import ExecutorInfo, OffsetsBehind, QueryProgress, SourceRead, Trigger
from spark_elastic.core.failures.judge import summary
from spark_elastic.core.keys import application, rescaling
from spark_elastic.core.policies.custom import CustomMetrics
from spark_elastic.core.policies.planner import Plan
from spark_elastic.core.policies.policy import Outlook, QueryWish
from spark_elastic.core.query.record import RunFailure, Savepoint
from spark_elastic.core.query_view import Obstacle, QueryView
from spark_elastic.core.rescale.history import Cause, RescaleRecord, Status, Stay, TerminatedReason
from spark_elastic.core.rescale.preparation import Preparation
from spark_elastic.core.transitions import FINISHED, TRANSITIONS
from spark_elastic.http.bounds_body import BOUNDS, VERTEX_ID, VERTEX_NAME, vertex_ids
from spark_elastic.http.errors import LARGEST
from spark_elastic.http.shapes import (
    BOOL,
    COUNT,
    INT,
    MS,
    NUMBER,
    TEXT,
    TIME,
    Object,
    Shape,
    choice,
    list_,
    map_,
    one_of,
    or_null,
    said,
)
from spark_elastic.installation import Spark
from spark_elastic.lacks import Lack, lacks_of
from spark_elastic.runtime.decided_stages import DecidedStage, Exchange, Sizes
from spark_elastic.runtime.publisher import View
from spark_elastic.runtime.timeline import Batch, Capacity, Departure, Timeline
from spark_elastic.version import __version__

_STATE = choice(*TRANSITIONS)

# ---- Decisions.


DECISION = Object[Decision](
    "Decision",
    number=INT.of(lambda it: it.number),
    query=or_null(TEXT).of(lambda it: it.query),
    name=or_null(TEXT).of(lambda it: it.name, "What the query is called; null: it has no name."),
    at=TIME.of(lambda it: it.at),
    kind=one_of(DecisionKind).of(lambda it: it.kind),
    reason=TEXT.of(lambda it: it.reason),
    message=TEXT.of(lambda it: it.message),
    cause=TEXT.of(lambda it: it.cause, "The id of the event that led to it."),
    before=or_null(INT).of(lambda it: it.before, "Partitions, slots or executors before."),
    after=or_null(INT).of(lambda it: it.after, "The same afterwards."),
    numbers=map_(Shape[float | str]({"anyOf": [NUMBER.schema, TEXT.schema]}), "What was compared.").of(
        lambda it: it.numbers
    ),
    alternatives=list_(TEXT).of(lambda it: it.alternatives),
    until=or_null(TIME).of(lambda it: it.until, "The end of a wait, in epoch ms."),
)
DECISIONS = Object[Iterable[Decision]]("Decisions", decisions=list_(DECISION).of(lambda them: them))

# ---- A policy's plan for a query: what it wants, the basis of that, and what it expects.


@frozen
class _Planned:
    """A plan for a query with its outlook, if known; `points` adds the micro-batches behind it."""

    view: QueryView
    plan: Plan
    points: bool

    @property
    def wish(self) -> QueryWish:
        return self.plan.granted.wish

    @property
    def foreseen(self) -> _Foreseen | None:
        return None if self.plan.outlook is None else _Foreseen(self.plan.outlook, self)

    @property
    def behind(self) -> Outlook | None:
        return None if self.plan.outlook is None or self.plan.outlook.backlog is None else self.plan.outlook


@frozen
class _Foreseen:
    """What a plan expects."""

    outlook: Outlook
    planned: _Planned


_OBJECTIVE = Object[_Foreseen](
    load=NUMBER.of(
        lambda it: round(it.outlook.target_load, 3), "Target share of time that micro-batches take."
    ),
    loadBand=NUMBER.of(
        lambda it: it.planned.view.settings.load_band, "How far above that the load may be before scaling up."
    ),
    intervalMs=MS.of(lambda it: it.planned.view.facts.trigger_ms, "The trigger interval, 0 without one."),
    maxLagMs=or_null(MS).of(lambda it: it.planned.view.settings.max_lag_ms),
    catchUpMs=MS.of(
        lambda it: it.planned.view.settings.catch_up_ms, "Time in which a backlog should be processed."
    ),
)
_POINT = Object[tuple[float, float]](
    rowsPerSlot=NUMBER.of(lambda it: round(it[0], 1)), durationMs=MS.of(lambda it: round(it[1]))
)
_MODEL = Object[_Foreseen](
    fixedMs=NUMBER.of(
        lambda it: round(it.outlook.fixed_ms, 1), "The part of a micro-batch that more slots do not shorten."
    ),
    rowUs=NUMBER.of(lambda it: round(it.outlook.row_us, 3), "Microseconds of slot time per row."),
    confidence=NUMBER.of(lambda it: round(it.outlook.confidence, 2), "From 0 to 1."),
    points=or_null(list_(_POINT)).of(
        lambda it: it.planned.plan.points if it.planned.points else None,
        "The micro-batches that the line is fitted to; null in lists of queries.",
    ),
)
_BACKLOG = Object[Outlook](
    rows=COUNT.of(lambda it: round(it.backlog or 0), "Rows in the backlog."),
    withinMs=MS.of(lambda it: it.within_ms or 0, "Time in which they should be processed."),
    goneInMs=or_null(MS).of(
        lambda it: None if it.gone_in_ms is None else round(it.gone_in_ms),
        "The forecast with the current slots; null: never.",
    ),
)
POLICY = Object[_Planned](
    "Policy",
    name=TEXT.of(lambda it: ",".join(it.view.settings.policy), "The policies that decide, split by commas."),
    wantedSlots=COUNT.of(lambda it: it.wish.slots, "The slots that it wants for the query."),
    allowedSlots=COUNT.of(lambda it: it.plan.granted.slots, "Of these, the slots that limits allow."),
    reason=TEXT.of(lambda it: it.wish.reason, "The code of its last reason."),
    message=TEXT.of(lambda it: it.plan.message, "Why it wants these slots, and not more."),
    until=or_null(TIME).of(
        lambda it: it.wish.until, "When it decides again at the latest, in epoch ms; null: at the next event."
    ),
    objective=or_null(_OBJECTIVE).of(
        lambda it: it.foreseen, "Its objective; null, like what follows: not known yet, or nothing to read."
    ),
    load=or_null(NUMBER).of(
        lambda it: None if it.plan.outlook is None else round(it.plan.outlook.load, 3),
        "The predicted load with the current slots.",
    ),
    rowsPerSecond=or_null(NUMBER).of(
        lambda it: None if it.plan.outlook is None else round(it.plan.outlook.rows_per_second, 1),
        "Rows that arrive.",
    ),
    model=or_null(_MODEL).of(
        lambda it: it.foreseen, "The line: a micro-batch takes fixed part + rows ÷ slots."
    ),
    backlog=or_null(_BACKLOG).of(lambda it: it.behind, "The backlog; null: none worth mentioning."),
    mostRows=or_null(COUNT).of(
        lambda it: it.plan.most_rows,
        "Max rows that a micro-batch reads from Kafka (`autoscale.backpressure`); null: no limit.",
    ),
)

# ---- Queries.


BATCH = Object[QueryProgress](
    "Batch",
    batch=INT.of(lambda it: it.batch),
    started=TIME.of(lambda it: it.started),
    durationMs=MS.of(lambda it: it.duration_ms),
    partitions=INT.of(lambda it: it.partitions),
    inputRows=INT.of(lambda it: it.input_rows),
    inputRowsPerSecond=NUMBER.of(lambda it: it.input_rows_per_second),
    processedRowsPerSecond=NUMBER.of(lambda it: it.processed_rows_per_second),
    stateRows=INT.of(lambda it: it.state_rows),
    stateBytes=INT.of(lambda it: it.state_bytes),
    offsetsBehind=or_null(
        said(
            Object[OffsetsBehind](
                avg=NUMBER.of(lambda it: it.avg), max=INT.of(lambda it: it.max), min=INT.of(lambda it: it.min)
            ),
            "Records not read by the partitions of the source that is furthest behind.",
        )
    ).of(lambda it: it.offsets_behind),
    sources=list_(
        Object[tuple[int, SourceRead]](
            vertex=TEXT.of(lambda it: source_vertex(it[0])),
            inputRows=INT.of(lambda it: it[1].rows),
            tasks=or_null(COUNT).of(lambda it: it[1].tasks),
        )
    ).of(lambda it: enumerate(it.sources)),
)


@frozen
class Shown:
    """A query; `points` adds the micro-batches that its policy uses, which are many."""

    view: QueryView
    points: bool = False

    @property
    def planned(self) -> _Planned | None:
        """The plan of a policy, None if declared bounds alone count."""
        return None if self.view.plan is None else _Planned(self.view, self.view.plan, self.points)


_OBSTACLE = Object[Obstacle](
    reason=TEXT.of(lambda it: it.reason),
    message=TEXT.of(lambda it: it.message, "The reason in a sentence, with what to type if that changes it."),
)

_PREPARING = Object[Preparation](
    partitions=COUNT.of(lambda it: it.partitions, "The partitions that its state is copied to."),
    since=TIME.of(lambda it: it.since),
)

QUERY = Object[Shown](
    "Query",
    id=TEXT.of(lambda it: it.view.facts.query, "The id of its checkpoint, the same in each run."),
    name=or_null(TEXT).of(lambda it: it.view.facts.name),
    run=TEXT.of(lambda it: it.view.run, "The id of its run."),
    state=_STATE.of(lambda it: it.view.state),
    stateful=BOOL.of(lambda it: it.view.facts.stateful),
    trigger=one_of(Trigger).of(lambda it: it.view.facts.trigger),
    triggerMs=MS.of(lambda it: it.view.facts.trigger_ms),
    partitions=or_null(COUNT).of(
        lambda it: it.view.partitions, "Shuffle partitions in force; null: not known yet."
    ),
    target=or_null(COUNT).of(lambda it: it.view.target, "Partitions that it is scaling to; null: none."),
    preparing=or_null(_PREPARING).of(
        lambda it: it.view.preparing,
        "The copy of its state for another number of partitions, while its micro-batches run; null: none.",
    ),
    requirements=BOUNDS.of(lambda it: it.view.declared),
    vertexIds=map_(VERTEX_ID, "The id by which a client of Flink knows each vertex.", VERTEX_NAME).of(
        lambda it: vertex_ids(it.view.facts.query, (vertex.id for vertex in it.view.declared.vertices))
    ),
    boundBy=TEXT.of(lambda it: it.view.declared.bound_by, "Where the upper bound comes from."),
    slots=COUNT.of(
        lambda it: it.view.share.slots,
        "The slots that it can use; if there are too few, those that others leave.",
    ),
    grantedSlots=or_null(COUNT).of(
        lambda it: it.view.granted_slots,
        "The slots that spark.elastic.policy allows; null: only its bounds apply.",
    ),
    neededSlots=COUNT.of(lambda it: it.view.declared.needed, "The slots for its lower bounds."),
    keepsPartitions=or_null(_OBSTACLE).of(
        lambda it: it.view.obstacle,
        "Why its state keeps the partitions of its checkpoint; null: it can be moved, or there is none.",
    ),
    priority=INT.of(
        lambda it: it.view.declared.priority,
        "If there are too few slots for all lower bounds, higher priority comes first.",
    ),
    weight=NUMBER.of(
        lambda it: it.view.declared.shuffle.weight,
        "Its share if there are too few slots for all upper bounds.",
    ),
    slotSharingGroups=map_(
        TEXT, "The slot sharing group of each vertex: slots are shared within a group only."
    ).of(lambda it: {vertex.id: vertex.group for vertex in it.view.declared.vertices}),
    mode=one_of(rescaling.Mode).of(lambda it: it.view.settings.mode),
    settings=map_(
        TEXT,
        "The settings in which it differs from the application: name (without spark.elastic.) and value.",
    ).of(lambda it: it.view.own_settings),
    restarts=COUNT.of(lambda it: it.view.restarted, "Retries after failures."),
    rescales=COUNT.of(lambda it: it.view.rescaled, "Moves of its state to another number of partitions."),
    sources=list_(TEXT).of(
        lambda it: (source.name for source in it.view.facts.sources),
        "What is read, in the order of the vertices source-0, …",
    ),
    lastBatch=or_null(BATCH).of(lambda it: it.view.last_progress),
    policy=or_null(POLICY).of(
        lambda it: it.planned, "The decision of spark.elastic.policy; null: only its bounds apply."
    ),
    lastDecision=or_null(DECISION).of(lambda it: it.view.last_decision),
    hold=or_null(DECISION).of(
        lambda it: it.view.hold, "The decision that holds it back now; null: nothing does."
    ),
)


# Some queries, of a total.
QUERIES = Object[tuple[Iterable[QueryView], int]](
    "Queries", queries=list_(QUERY).of(lambda it: map(Shown, it[0])), total=COUNT.of(lambda it: it[1])
)

# ---- What a query has been through.


SAVEPOINT = Object[Savepoint](
    "Savepoint",
    at=TIME.of(lambda it: it.at),
    path=TEXT.of(lambda it: it.path),
    batch=COUNT.of(lambda it: it.batch, "The last micro-batch in it."),
    bytes=COUNT.of(lambda it: it.bytes, "Its size."),
)
SAVEPOINTS = Object[Iterable[Savepoint]]("Savepoints", savepoints=list_(SAVEPOINT).of(lambda them: them))

RESCALE = Object[RescaleRecord](
    "Rescale",
    number=INT.of(lambda it: it.number),
    requirements=INT.of(lambda it: it.requirements, "Counts the bounds that the query has had."),
    attempt=INT.of(lambda it: it.attempt, "Counts the rescales with these bounds."),
    cause=one_of(Cause).of(lambda it: it.cause),
    status=one_of(Status).of(lambda it: it.status),
    reason=or_null(one_of(TerminatedReason)).of(lambda it: it.reason),
    started=TIME.of(lambda it: it.started),
    ended=or_null(TIME).of(lambda it: it.ended),
    slotsBefore=or_null(COUNT).of(lambda it: it.slots_before),
    slotsAfter=or_null(COUNT).of(lambda it: it.slots_after),
    partitionsBefore=or_null(COUNT).of(lambda it: it.partitions_before),
    partitionsAfter=or_null(COUNT).of(lambda it: it.partitions_after),
    preparedMs=or_null(MS).of(
        lambda it: it.prepared_ms,
        "Milliseconds for which its state was copied while it ran; null: it was not, or moved in the pause.",
    ),
    pausedMs=MS.of(lambda it: it.paused_ms, "Milliseconds during which the query was paused."),
    firstBatchMs=or_null(MS).of(
        lambda it: it.first_batch_ms,
        "The duration of the first micro-batch with the new number of partitions; null: none yet.",
    ),
    executorsUsed=or_null(TIME).of(
        lambda it: it.executors_used,
        "When the last executor that joined meanwhile got its first task; null: unknown.",
    ),
    warmUpMs=or_null(MS).of(lambda it: it.warm_up_ms, "The longest warm-up among these executors."),
    states=list_(
        Object[Stay](
            state=_STATE.of(lambda it: it.state),
            entered=TIME.of(lambda it: it.entered),
            left=or_null(TIME).of(lambda it: it.left),
        )
    ).of(lambda it: it.stays),
)
RESCALES = Object[Iterable[RescaleRecord]]("Rescales", rescales=list_(RESCALE).of(lambda them: them))

EXCEPTION = Object[RunFailure](
    "Exception",
    at=TIME.of(lambda it: it.at),
    error=TEXT.of(lambda it: it.failure.error),
    summary=TEXT.of(
        lambda it: summary(it.failure.error),
        "The error; of a Python traceback, the line that says what was raised.",
    ),
    errorClass=or_null(TEXT).of(lambda it: it.failure.error_class),
    causes=list_(TEXT).of(lambda it: it.failure.causes),
    offsets=TEXT.of(lambda it: it.failure.offsets, "The end offsets of the failed micro-batch."),
    reason=TEXT.of(lambda it: it.reason, "The code of the decision that followed."),
)
EXCEPTIONS = Object[Iterable[RunFailure]]("Exceptions", exceptions=list_(EXCEPTION).of(lambda them: them))


_LAG = said(
    MS,
    "Estimate of how long the oldest unread row had waited at its end: since the micro-batch before it began "
    "or the query was idle, and the time in which what its sources report as unread has arrived.",
)
_LOST = list_(
    Object[Departure](
        at=TIME.of(lambda it: it.at),
        executor=TEXT.of(lambda it: it.executor),
        reason=TEXT.of(lambda it: it.reason),
        released=BOOL.of(lambda it: it.released),
    )
)


@frozen
class Since:
    """The series of a query's chart after `after` (epoch ms)."""

    series: Timeline
    query: str
    after: int


TIMELINE = Object[Since](
    "Timeline",
    batches=list_(
        Object[Batch](
            at=TIME.of(lambda it: it.at),
            durationMs=MS.of(lambda it: it.duration_ms),
            partitions=INT.of(lambda it: it.partitions),
            inputRowsPerSecond=NUMBER.of(lambda it: it.input_rows_per_second),
            lagMs=_LAG.of(lambda it: it.lag_ms),
        )
    ).of(lambda it: it.series.batches(it.query, it.after)),
    slots=list_(Object[tuple[int, int]](at=TIME.of(lambda it: it[0]), slots=COUNT.of(lambda it: it[1]))).of(
        lambda it: it.series.slots(it.after)
    ),
    lost=_LOST.of(lambda it: it.series.lost(it.after)),
)


@frozen
class Lately:
    """The series of the application's chart after `after` (epoch ms), with at most `most` live queries."""

    series: Timeline
    view: View
    after: int
    most: int

    @property
    def queries(self) -> Iterable[tuple[QueryView, Lately]]:
        """The queries with the largest lags, those first."""
        live = [query for query in self.view.queries.values() if query.state != FINISHED]
        live.sort(key=lambda query: -self.series.last_lag_ms(query.facts.query))
        return ((query, self) for query in live[: self.most])


APPLICATION_TIMELINE = Object[Lately](
    "ApplicationTimeline",
    slots=list_(
        Object[tuple[int, Capacity]](
            at=TIME.of(lambda it: it[0]),
            slots=COUNT.of(lambda it: it[1].slots),
            wanted=or_null(COUNT).of(
                lambda it: it[1].wanted, "The slots that all queries want together; null: one wants all."
            ),
            executors=COUNT.of(lambda it: it[1].executors),
        )
    ).of(lambda it: it.series.capacity(it.after)),
    lost=_LOST.of(lambda it: it.series.lost(it.after)),
    queries=list_(
        Object[tuple[QueryView, Lately]](
            id=TEXT.of(lambda it: it[0].facts.query),
            name=or_null(TEXT).of(lambda it: it[0].facts.name),
            triggerMs=MS.of(lambda it: it[0].facts.trigger_ms),
            batches=list_(
                Object[Batch](
                    at=TIME.of(lambda it: it.at),
                    durationMs=MS.of(lambda it: it.duration_ms),
                    lagMs=_LAG.of(lambda it: it.lag_ms),
                )
            ).of(lambda it: it[1].series.batches(it[0].facts.query, ended_after=it[1].after)),
        )
    ).of(lambda it: it.queries, "The live queries with the largest lags, those first."),
)

# ---- Batch stages. Question and answer are as in the journal.


SIZES = said(
    Object[Sizes](
        "Sizes",
        of=choice("tasks", "partitions").of(lambda it: "tasks" if it.of_tasks else "partitions"),
        count=COUNT.of(lambda it: it.count),
        total=COUNT.of(lambda it: it.total),
        smallest=COUNT.of(lambda it: it.smallest),
        median=COUNT.of(lambda it: it.median),
        largest=COUNT.of(lambda it: it.largest),
        buckets=list_(COUNT).of(lambda it: it.buckets),
    ),
    "Bytes of tasks, or of partitions where Spark makes its own tasks of them. The buckets count them in "
    "equal steps from 0 to the largest.",
)
STAGE = Object[DecidedStage](
    "Stage",
    number=INT.of(lambda it: it.number),
    at=TIME.of(lambda it: it.stage["at"]),
    group=TEXT.of(lambda it: it.group, "The shuffles or the scan of this decision."),
    execution=or_null(TEXT).of(
        lambda it: it.execution,
        "The id of its SQL execution, or of its operation of Spark Connect; null: neither, as with df.rdd.",
    ),
    query=or_null(TEXT).of(
        lambda it: it.query,
        "The id of the streaming query that runs it, as a micro-batch or in foreachBatch.",
    ),
    exchanges=list_(
        Object[Exchange](
            id=TEXT.of(lambda it: it.id),
            bytes=or_null(COUNT).of(
                lambda it: it.bytes, "Bytes written, or expected before it has run; null: unknown."
            ),
        )
    ).of(lambda it: it.exchanges, "The shuffles of the group; empty for a scan."),
    question=choice(*(question.__name__ for question in QUESTION_TYPES)).of(
        lambda it: it.stage["question"]["type"]
    ),
    tookUs=COUNT.of(lambda it: it.stage["took_us"], "Microseconds that the policy process took."),
    kind=one_of(DecisionKind).of(lambda it: it.stage["answer"]["record"]["kind"]),
    reason=TEXT.of(lambda it: it.stage["answer"]["record"]["reason"]),
    message=TEXT.of(lambda it: it.stage["answer"]["record"]["message"]),
    before=or_null(COUNT).of(lambda it: it.stage["answer"]["record"]["before"]),
    after=or_null(COUNT).of(lambda it: it.stage["answer"]["record"]["after"]),
    numbers=Shape[Any]({"type": "object"}).of(
        lambda it: it.stage["answer"]["record"]["numbers"], "What was compared."
    ),
    sizes=or_null(SIZES).of(lambda it: it.sizes),
)


@frozen
class Decided:
    """Decisions about batch stages, the newest first; `shown` are those with numbers below `before`."""

    all: Sequence[DecidedStage]
    before: int = LARGEST
    most: int | None = None

    @property
    def shown(self) -> Iterable[DecidedStage]:
        """At most `most` of them."""
        return islice((one for one in self.all if one.number < self.before), self.most)


STAGES = Object[Decided](
    "Stages",
    stages=list_(STAGE).of(lambda it: it.shown),
    unanswered=COUNT.of(
        lambda it: it.all[0].stage["unanswered"] if it.all else 0,
        "Questions that were left to Spark's own rules.",
    ),
)

EXECUTION = Object[Sequence[DecidedStage]](
    "Execution",
    execution=or_null(TEXT).of(
        lambda it: it[0].execution,
        "The id of the SQL execution, or of the operation of Spark Connect; null: neither.",
    ),
    query=or_null(TEXT).of(
        lambda it: it[0].query,
        "The id of the streaming query that runs it; null: it is of no streaming query.",
    ),
    number=INT.of(lambda it: it[0].number, "The number of its newest decision."),
    stages=list_(STAGE).of(lambda it: it, "The decisions about it, newest first."),
)
EXECUTIONS = Object[Iterable[Sequence[DecidedStage]]](
    "Executions", executions=list_(EXECUTION).of(lambda them: them)
)

# ---- The application.


@frozen
class Glance:
    """The application as a client sees it, which `may_write`; it has `ended` in an event log."""

    view: View
    may_write: bool = False
    ended: bool = False

    @property
    def lacks(self) -> Iterable[Lack]:
        """What this Spark lacks, except for parts, which say so themselves."""
        off = {name for name, reason in self.view.parts.items() if reason}
        return lacks_of(Spark(self.view.spark_version), off=off)


@frozen
class Held:
    """Why live queries wait, the newest of these decisions first."""

    decisions: Sequence[Decision]

    @classmethod
    def of(cls, view: View) -> Held:
        """Return those of a view."""
        holds = (query.hold for query in view.queries.values() if query.state != FINISHED)
        found = [decision for decision in holds if decision is not None]
        return cls(sorted(found, key=lambda decision: -decision.number))


_HELD_SHOWN = 5


def _cost(view: View) -> float | None:
    price = view.settings[application.PRICE]
    return None if price is None else round(view.usage.core_ms / _HOUR_MS * price, 6)


_HOUR_MS = 3_600_000
_EXECUTOR = Object[tuple[ExecutorInfo, View]](
    id=TEXT.of(lambda it: it[0].executor),
    host=TEXT.of(lambda it: it[0].host),
    cores=COUNT.of(lambda it: it[0].cores),
    slots=COUNT.of(lambda it: it[1].usable.get(it[0].executor, 0)),
    excluded=BOOL.of(lambda it: it[0].excluded),
    exclusion=or_null(TEXT).of(
        lambda it: it[1].exclusions.get(it[0].executor),
        "Why Spark has excluded it; null: it has not, or that is not known.",
    ),
    decommissioning=BOOL.of(lambda it: it[0].decommissioning),
)
_CUSTOM_POLICY = Object[tuple[str, CustomMetrics]](
    name=TEXT.of(lambda it: it[0]),
    answers=COUNT.of(lambda it: it[1].answers),
    failures=COUNT.of(lambda it: it[1].failures),
    error=or_null(TEXT).of(lambda it: None if it[1].failing is None else it[1].failing.error),
    since=or_null(TIME).of(lambda it: None if it[1].failing is None else it[1].failing.since),
    retryAt=or_null(TIME).of(lambda it: None if it[1].failing is None else it[1].failing.retry_at),
)
_PART = Object[tuple[str, str]](
    name=TEXT.of(lambda it: it[0]),
    on=BOOL.of(lambda it: not it[1]),
    reason=or_null(TEXT).of(lambda it: it[1] or None),
)
_LACK = Object[Lack](
    what=TEXT.of(lambda it: it.what),
    why=TEXT.of(lambda it: it.why),
    instead=TEXT.of(lambda it: it.instead),
    since=TEXT.of(lambda it: it.since),
)
OVERVIEW = Object[Glance](
    "Overview",
    application=Object[View](
        id=TEXT.of(lambda it: it.application), name=TEXT.of(lambda it: it.application_name)
    ).of(lambda it: it.view),
    version=TEXT.of(lambda _: __version__),
    sparkVersion=TEXT.of(lambda it: it.view.spark_version),
    at=TIME.of(lambda it: it.view.at),
    mode=choice("reactive", "adaptive").of(lambda it: it.view.settings[rescaling.MODE]),
    adviseOnly=BOOL.of(lambda it: it.view.settings[application.ADVISE_ONLY]),
    readOnly=BOOL.of(lambda it: it.view.settings[application.REST_READ_ONLY]),
    ended=BOOL.of(lambda it: it.ended, "Whether this is from the event log of an ended application."),
    mayWrite=BOOL.of(lambda it: it.may_write, "Whether the caller may make changes."),
    maxParallelism=INT.of(
        lambda it: it.view.settings[rescaling.MAX_PARALLELISM], "The value of an upper bound of -1."
    ),
    policyRestarts=COUNT.of(lambda it: it.view.restarts, "Policy processes before this one."),
    slots=Object[View](
        now=COUNT.of(lambda it: it.slots),
        desired=or_null(COUNT).of(
            lambda it: it.wanted, "The upper bounds of all queries together; null: one has none."
        ),
    ).of(lambda it: it.view),
    held=Object[Held](
        count=COUNT.of(lambda it: len(it.decisions)),
        decisions=list_(DECISION).of(lambda it: it.decisions[:_HELD_SHOWN]),
    ).of(
        lambda it: Held.of(it.view),
        f"How many live queries wait, and why: the {_HELD_SHOWN} newest of these decisions.",
    ),
    usage=Object[View](
        since=TIME.of(lambda it: it.usage.since, "When this policy process began to count."),
        executorHours=NUMBER.of(lambda it: round(it.usage.executor_ms / _HOUR_MS, 6)),
        coreHours=NUMBER.of(lambda it: round(it.usage.core_ms / _HOUR_MS, 6)),
        cost=or_null(NUMBER).of(_cost, "Core-hours at `spark.elastic.pricePerCoreHour`; null: not set."),
    ).of(lambda it: it.view, "For how long executors have been there, up to the last event."),
    executors=list_(_EXECUTOR).of(lambda it: ((executor, it.view) for executor in it.view.executors)),
    queries=map_(COUNT, "How many queries are in each state.", _STATE).of(
        lambda it: Counter(query.state for query in it.view.queries.values())
    ),
    customPolicies=list_(_CUSTOM_POLICY).of(
        lambda it: it.view.custom_policies.items(),
        "The custom policies that have been asked: why one has no answer now, since when, and when it is "
        "asked again; null: it has one.",
    ),
    parts=list_(_PART).of(
        lambda it: it.view.parts.items(), "What the plugin can do here, and why not all; empty: not told."
    ),
    lacks=list_(_LACK).of(
        lambda it: it.lacks, "Other features that this Spark lacks, and which version has them."
    ),
)
