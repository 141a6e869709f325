"""Where the loop meets its clients other than the driver: they read a view, and request events.

The loop never blocks here, and reading `view` never waits for the loop. A client that requests an event waits
until the loop has written it to the journal and handled it, or has refused it.
"""

from __future__ import annotations

import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import accumulate, count
from statistics import median_low
from typing import Any

from attrs import define, field, frozen

from spark_elastic.core.actions import Action, Report
from spark_elastic.core.batch.questions import Ranges
from spark_elastic.core.events import (
    BatchStages,
    Event,
    ExecutorAdded,
    ExecutorDecommissioning,
    ExecutorRemoved,
    ExecutorUsage,
    QueryProgress,
    Snapshot,
    StageCompleted,
)
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.view import QueryView
from spark_elastic.runtime.port import JsonObject
from spark_elastic.runtime.view import Decisions, QueryViews, Totals, View
from spark_elastic.settings import Settings
from spark_elastic.wire import decode_question

# Recent history as series for charts: micro-batches of each query, slots, lost executors.
# All series are bounded: those of a thousand queries take about 25 MB.


BATCHES_KEPT = 240
"""Number of micro-batches kept for each query."""

SLOTS_KEPT = 500
"""Number of changes of the slot count that are kept."""

LOST_KEPT = 200
"""Number of lost executors that are kept."""

# Packed, because objects would take four times the memory.
_BATCH = struct.Struct("<qqqd")


@frozen(kw_only=True)
class Batch:
    """One micro-batch: its start (epoch ms), its duration, its partitions and its input rate."""

    at: int
    duration_ms: int
    partitions: int
    input_rows_per_second: float


@frozen(kw_only=True)
class Departure:
    """An executor that is gone since `at` (epoch ms); a `released` one went as intended."""

    at: int
    executor: str
    reason: str
    released: bool


# How Spark puts it that the driver asked for the end of an executor.
_KILLED = "Executor killed by driver"


@define
class Timeline:
    """The series; one thread writes them, while others may read them."""

    _batches: dict[str, deque[bytes]] = field(factory=dict)
    _slots: deque[tuple[int, int]] = field(factory=lambda: deque(maxlen=SLOTS_KEPT))
    _lost: deque[Departure] = field(factory=lambda: deque(maxlen=LOST_KEPT))
    # Spark reports the loss of an executor repeatedly, and also that of executors which never arrived.
    _here: set[str] = field(factory=set)
    _leaving: set[str] = field(factory=set)

    def note(self, event: Event, slots: int) -> None:
        """Record an event, and the number of slots after it."""
        if isinstance(event, QueryProgress):
            kept = self._batches.setdefault(event.query, deque(maxlen=BATCHES_KEPT))
            rate = event.input_rows_per_second
            kept.append(_BATCH.pack(event.started, event.duration_ms, event.partitions, rate))
        elif isinstance(event, Snapshot):
            self._here = {executor.executor for executor in event.executors}
            self._leaving = {executor.executor for executor in event.executors if executor.decommissioning}
        elif isinstance(event, ExecutorAdded):
            self._here.add(event.executor)
        elif isinstance(event, ExecutorDecommissioning):
            self._leaving.add(event.executor)
        elif isinstance(event, ExecutorRemoved) and event.executor in self._here:
            self._here.remove(event.executor)
            released = event.executor in self._leaving or event.reason.startswith(_KILLED)
            self._leaving.discard(event.executor)
            self._lost.append(
                Departure(at=event.at, executor=event.executor, reason=event.reason, released=released)
            )
        if not self._slots or self._slots[-1][1] != slots:
            self._slots.append((event.at, slots))

    def keep_only(self, queries: Container[str]) -> None:
        """Remove the batches of all other queries."""
        for query in [query for query in self._batches if query not in queries]:
            del self._batches[query]

    def batches(self, query: str, after: int = 0) -> Sequence[Batch]:
        """Return the micro-batches of a query that started after `after` (epoch ms), newest last."""
        kept = self._batches.get(query)
        found = (_BATCH.unpack(packed) for packed in (() if kept is None else kept.copy()))
        return [
            Batch(at=at, duration_ms=took, partitions=partitions, input_rows_per_second=rate)
            for at, took, partitions, rate in found
            if at > after
        ]

    def slots(self, after: int = 0) -> Sequence[tuple[int, int]]:
        """Return the changes of the slot count after `after` (epoch ms) as (time, slots), newest last."""
        return [(at, slots) for at, slots in self._slots.copy() if at > after]

    def lost(self, after: int = 0) -> Sequence[Departure]:
        """Return the executors that went after `after` (epoch ms), newest last."""
        return [one for one in self._lost.copy() if one.at > after]


# The last decisions about batch stages, for display, and the task sizes that resulted from them.


STAGES_KEPT = 1_000
HISTOGRAM_BUCKETS = 12
_LISTS = ("exchanges", "specs")


@frozen(kw_only=True)
class Sizes:
    """Sizes of tasks in bytes, or of partitions if Spark was left to form its own tasks from them.

    `buckets` is a histogram in equal steps from 0 to the largest size.
    """

    of_tasks: bool
    count: int
    total: int
    smallest: int
    median: int
    largest: int
    buckets: tuple[int, ...]


@define
class DecidedStage:
    """A decision with its number, and the question and answer as they are in the journal.

    Once it is `measured`, its lists are dropped: for a thousand stages with some thousand tasks each they
    would take hundreds of megabytes.
    """

    number: int
    stage: JsonObject
    _known: tuple[Sizes | None] | None = None

    @property
    def sizes(self) -> Sizes | None:
        """The sizes of the tasks or partitions; None for other questions, or if there are none."""
        stage = self.stage  # read first: a stage without its lists has known sizes
        return _measure(stage) if self._known is None else self._known[0]

    def measured(self) -> None:
        """Replace the lists by the sizes computed from them."""
        self._known = (_measure(self.stage),)
        stage = {**self.stage}
        for part in ("question", "answer"):
            stage[part] = {name: value for name, value in stage[part].items() if name not in _LISTS}
        self.stage = stage


def _measure(stage: JsonObject) -> Sizes | None:
    question = decode_question(stage["question"])
    if not isinstance(question, Ranges):
        return None
    partitions = [sum(sizes) for sizes in zip(*(e.bytes for e in question.exchanges), strict=True)]
    specs = stage["answer"].get("specs")
    if specs is None:
        return _sizes(False, partitions)
    sums = [0, *accumulate(partitions)]
    return _sizes(True, [sums[spec["end"]] - sums[spec["start"]] for spec in specs])


def _sizes(of_tasks: bool, found: list[int]) -> Sizes | None:
    if not found:
        return None
    largest = max(found)
    buckets = [0] * HISTOGRAM_BUCKETS
    for size in found:
        buckets[min(size * HISTOGRAM_BUCKETS // (largest + 1), HISTOGRAM_BUCKETS - 1)] += 1
    return Sizes(
        of_tasks=of_tasks,
        count=len(found),
        total=sum(found),
        smallest=min(found),
        median=median_low(found),
        largest=largest,
        buckets=tuple(buckets),
    )


@define
class DecidedStages:
    """The last decisions, numbered from 1; one thread adds them, while others may read them."""

    _kept: deque[DecidedStage] = field(factory=lambda: deque(maxlen=STAGES_KEPT))
    _numbers: count[int] = field(factory=lambda: count(1))

    def add(self, stage: JsonObject) -> DecidedStage:
        """Add a decision, and return it with its number."""
        decided = DecidedStage(next(self._numbers), stage)
        self._kept.append(decided)
        return decided

    def newest_first(self) -> Sequence[DecidedStage]:
        """Return the decisions, newest first."""
        return tuple(reversed(self._kept.copy()))


MakeEvent = Callable[[str, int], Event]
"""Creates an event from its id and its time (epoch ms)."""

Check = Callable[[Mapping[str, QueryView]], MakeEvent]
"""Checks the current queries and returns what creates the event, or raises because no event is possible.

It runs in the loop's thread, so that two writers, or a writer and the policy file, cannot overtake each
other.
"""


class Late(Exception):
    """The loop did not get to the request in time; nothing was done."""


class NotJournaled(Exception):
    """The journal cannot be written; nothing was done."""


class Request:
    """One requested event, from the request to the answer."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._lock = threading.Lock()
        self._taken = False
        self._given_up = False
        self._settled = threading.Event()
        self._error: Exception | None = None
        self.queries: Mapping[str, QueryView] = {}

    def wait(self, timeout_s: float) -> None:
        """Wait until the request is done. Raises its refusal, or Late if it was not started in time."""
        if not self._settled.wait(timeout_s):
            if self.give_up():
                raise Late
            # The loop is handling it, so it would be wrong to report that nothing was done.
            self._settled.wait()
        if self._error is not None:
            raise self._error

    def give_up(self) -> bool:
        """Withdraw the request; return whether that was possible. One being handled cannot be stopped."""
        with self._lock:
            self._given_up = not self._taken
            return self._given_up

    def event(self, next_id: Callable[[], str], at: int) -> Event | None:
        """Return the event, or None if it was withdrawn or refused (in the loop's thread)."""
        with self._lock:
            if self._given_up:
                return None
            self._taken = True
        try:
            make = self._check(self.queries)
        except Exception as error:  # any error is the answer to the client
            self._error = error
            return None
        return make(next_id(), at)

    def not_journaled(self) -> None:
        """Refuse the request, because it could not be journaled."""
        self._error = NotJournaled()

    def settle(self) -> None:
        """Let the waiting client continue."""
        self._settled.set()


class Board:
    """The meeting point; `restarts` counts the policy processes before this one.

    `view` is None until the first snapshot has been handled. `timeline` may be read by any thread. `wake`
    makes the loop start its next round.
    """

    def __init__(self, restarts: int = 0) -> None:
        self.view: View | None = None
        self.wake: Callable[[], None] = lambda: None
        self.restarts = restarts
        self._asked: deque[Request] = deque()
        self._decided: deque[DecidedStage] = deque()
        self._stages = DecidedStages()
        self._taken: list[Request] = []
        self._settings: Settings | None = None
        self._snapshot: Snapshot | None = None
        self._scheduler: Scheduler | None = None
        self._shared = (0, 0)
        self._query_views = QueryViews()
        self._decisions = Decisions()
        self.timeline = Timeline()
        self._at = 0
        self._news = False

    # For clients, in any thread

    def ask(self, check: Check, timeout_s: float) -> None:
        """Request an event, and wait until it has been handled.

        Raises what `check` raises, NotJournaled, or Late. Raises what `wake` raises; then nothing was done.
        """
        request = Request(check)
        self._asked.append(request)
        try:
            self.wake()
        except Exception:
            # The loop may start a round on its own; it must not carry out then what is refused here.
            if request.give_up():
                raise
        request.wait(timeout_s)

    @property
    def waiting(self) -> int:
        """The number of requests that the loop has not taken yet."""
        return len(self._asked)

    def decided(self, stage: JsonObject) -> None:
        """Note a question about a batch stage with its answer, for the loop to write to the journal."""
        self._decided.append(self._stages.add(stage))

    @property
    def stages(self) -> Sequence[DecidedStage]:
        """The last decisions about batch stages, newest first."""
        return self._stages.newest_first()

    # For the loop, in its thread

    def take_decided(self) -> Iterator[JsonObject]:
        """Yield the decisions about batch stages that are not in the journal yet."""
        while self._decided:
            decided = self._decided.popleft()
            yield decided.stage
            decided.measured()

    def scheduler(self, settings: CoreSettings) -> Watched:
        """Create a scheduler, and observe it."""
        return self.watch(Scheduler(settings))

    def watch(self, scheduler: Scheduler) -> Watched:
        """Observe a scheduler."""
        self._scheduler = scheduler
        return Watched(scheduler, self)

    def begin(self, settings: Settings, snapshot: Snapshot) -> None:
        """Note the settings and the first snapshot of the application."""
        self._settings = settings
        self._snapshot = snapshot

    def take(self) -> Sequence[Request]:
        """Return the new requests; each must be answered before the next `publish`."""
        fresh: list[Request] = []
        while self._asked:
            request = self._asked.popleft()
            request.queries = {} if self._scheduler is None else self._scheduler.queries
            fresh.append(request)
        self._taken += fresh
        return fresh

    def note(self, event: Event, actions: tuple[Action, ...], seconds: float) -> None:
        """Record an event, its actions, and the time that deciding took."""
        self._decisions.took(seconds)
        self._at = max(self._at, event.at)
        self._news = True
        if self._scheduler is not None:
            self.timeline.note(event, self._scheduler.slots.total)
            # A change of one query can give others more or fewer slots.
            # In addition, policies look at all queries together.
            shared = self._scheduler.divisions, self._scheduler.plans
            if shared != self._shared:
                self._shared = shared
                self._query_views.all_stale = True
        # An event about a stage, or about what an executor holds, changes no query.
        if not isinstance(event, StageCompleted | BatchStages | ExecutorUsage):
            self._mark(event)
        for action in actions:
            if isinstance(action, Report):
                self._decisions.keep(action.decision)
                if action.decision.query is not None:
                    # When one query's move ends, another query can begin its own.
                    self._query_views.stale.add(action.decision.query)

    def _mark(self, event: Event) -> None:
        """Mark the queries that need a new view."""
        query = getattr(event, "query", None)
        if query is not None:
            self._query_views.stale.add(query)
        else:
            # An executor or a policy file may affect any query.
            self._query_views.all_stale = True

    def publish(self) -> None:
        """Publish what has changed, then release the waiting clients."""
        if self._news and self._scheduler is not None and self._settings and self._snapshot:
            self._news = False
            self.view = self._look(self._scheduler, self._settings, self._snapshot)
        taken, self._taken = self._taken, []
        for request in taken:
            request.settle()

    def _look(self, scheduler: Scheduler, settings: Settings, snapshot: Snapshot) -> View:
        queries = self._query_views.renew(scheduler)
        self.timeline.keep_only(queries)
        return View(
            at=self._at,
            application=snapshot.application,
            application_name=snapshot.application_name,
            spark_version=snapshot.spark_version,
            parts=snapshot.parts,
            settings=settings,
            restarts=self.restarts,
            slots=scheduler.slots.total,
            executors=tuple(scheduler.slots.executors.values()),
            usable=dict(scheduler.slots.usable),
            exclusions=dict(scheduler.slots.exclusions),
            usual_slots=scheduler.usual_slots,
            queries=queries,
            custom_policies=scheduler.custom_policies,
            decisions=self._decisions.kept(),
            totals=Totals(
                rescales=self._query_views.rescales(),
                paused=self._query_views.paused(),
                queries=self._query_views.tallies(),
                decision_buckets=self._decisions.buckets(),
                decision_seconds=self._decisions.seconds,
            ),
        )


class Watched:
    """A scheduler that reports every step to the board."""

    def __init__(self, scheduler: Scheduler, board: Board) -> None:
        self.scheduler = scheduler
        self._board = board

    def handle(self, event: Event) -> tuple[Action, ...]:
        """Handle one event and return the resulting actions."""
        begin = time.perf_counter()
        actions = self.scheduler.handle(event)
        self._board.note(event, actions, time.perf_counter() - begin)
        return actions

    def save(self) -> dict[str, Any]:
        """Return the complete state, ready for JSON."""
        return self.scheduler.save()
