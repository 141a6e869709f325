"""A large application as the scheduler sees it: its events, and the outcomes of the orders.

Every query commits a micro-batch per trigger (one stage; two if it has state) or, one time in twenty, has
nothing to do. Every executor reports its usage every 10 s. In addition, executors are lost, replaced,
excluded and decommissioned. Queries fail, and users stop them and submit them again under another id. In
adaptive mode, bounds change. Orders are carried out with a realistic delay, the state is moved between two
micro-batches, and one order in fifty fails. Timers fire after the events of the same batch.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from attrs import define, field, frozen

from spark_elastic.core import actions as ac
from spark_elastic.core import events as ev
from spark_elastic.core.bounds.declared import WantedBounds
from spark_elastic.core.events import StageCompleted, StageWork
from spark_elastic.runtime.loop import Timers

_SECOND = 1_000
_USAGE_MS = 10 * _SECOND
# The driver hands over the events of 50 ms together, at most 1,000.
_BATCH_MS = 50
_BATCH_EVENTS = 1_000
_IDLE = 0.05
_REFUSED = 0.02
_CORES = 2
_MOVE_MS = 1 * _SECOND
_BASE_MS, _OVERHEAD_MS = 100, 80


@frozen(kw_only=True)
class Size:
    """The size of the application; lives and pauses are means, in ms."""

    executors: int
    queries: int
    trigger_ms: int
    executor_life_ms: int
    query_life_ms: int
    query_failure_ms: int
    bounds_pause_ms: int | None = None


@define(kw_only=True)
class _Query:
    """One query.

    `start` counts its starts, so that work scheduled before a failure is dropped. `rescale` is an order that
    waits for the next batch boundary.
    """

    facts: ev.QueryFacts
    number: int
    work_ms: float
    partitions: int
    start: int = 0
    running: bool = False
    batch: int = 0
    rescale: ac.Rescale | None = None

    @property
    def run(self) -> str:
        return f"run-{self.facts.query}"


@define
class World:
    """The application. `now` is the time of its last event, epoch ms."""

    size: Size
    seed: int = 1
    now: int = 1_000_000_000
    _random: random.Random = field(init=False)
    _due: list[tuple[int, int, Callable[[], Iterator[ev.Event]]]] = field(factory=list, init=False)
    _timers: Timers = field(factory=Timers, init=False)
    _counted: int = field(default=0, init=False)
    _events: int = field(default=0, init=False)
    _executors: dict[str, int] = field(factory=dict, init=False)
    _wanted: int = field(init=False)
    _queries: dict[str, _Query] = field(factory=dict, init=False)
    _restarts: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._wanted = self.size.executors

    def begin(self) -> Iterator[ev.Event]:
        """Yield the first snapshot, the bounds (in adaptive mode), and the submission of each query."""
        infos = []
        for _ in range(self.size.executors):
            executor = self._new_executor()
            infos.append(ev.ExecutorInfo(executor=executor, host=f"host-{executor}", cores=_CORES))
        yield ev.Snapshot(
            **self._stamp(),
            application="app-1",
            application_name="bench",
            spark_version="4.2.0",
            conf={"spark.executor.cores": str(_CORES)},
            executors=tuple(infos),
        )
        if self.size.bounds_pause_ms is not None:
            bounds = {f"name-{number}": {"shuffle": self._bounds()} for number in range(self.size.queries)}
            yield ev.PolicyFileChanged(**self._stamp(), path="policy.yaml", bounds=bounds)
            self._after(self._pause(self.size.bounds_pause_ms), self._bounds_change)
        for number in range(self.size.queries):
            yield from self._submit(number)

    def batch(self) -> list[ev.Event]:
        """Return the next events as the driver would hand them over, then the expired timers."""
        events: list[ev.Event] = []
        end = min(self._due[0][0], self._timers.next_at() or self._due[0][0]) + _BATCH_MS
        while self._due[0][0] <= end and len(events) < _BATCH_EVENTS:
            at, _, happens = heapq.heappop(self._due)
            self.now = max(self.now, at)
            events += happens()
        if len(events) < _BATCH_EVENTS:
            self.now = max(self.now, end)
        while (due := self._timers.pop_due(self.now)) is not None:
            events.append(ev.TimerFired(**self._stamp(), timer=due.timer, query=due.query))
        return events

    def carry_out(self, actions: Iterable[ac.Action]) -> None:
        """Accept orders; their outcomes arrive with later batches."""
        for action in actions:
            match action:
                case ac.Report():
                    pass
                case ac.SetTimer():
                    self._timers.set(action)
                case ac.CancelTimer(timer=timer):
                    self._timers.cancel(timer)
                case ac.Configure():
                    self._restarts = action.restarts
                    self._after(1, partial(self._done, action))
                case ac.HoldQuery():
                    self._after(1, partial(self._done, action))
                case ac.StartQuery():
                    self._after(_SECOND, partial(self._start, action))
                case ac.CancelQuery() | ac.FailQuery():
                    self._after(500, partial(self._stop, action))
                case ac.Rescale():
                    self._after(20, partial(self._rescale, action))
                case ac.RequestExecutors():
                    self._after(100, partial(self._request, action))
                case ac.KillExecutors() | ac.DecommissionExecutors():
                    self._after(100, partial(self._release, action))

    # Executors

    def _new_executor(self) -> str:
        self._counted += 1
        executor = f"{self._counted}"
        self._executors[executor] = 0
        self._after(self._random.randrange(_USAGE_MS), partial(self._usage, executor))
        self._after(self._pause(self.size.executor_life_ms), partial(self._end_of_executor, executor))
        return executor

    def _usage(self, executor: str) -> Iterator[ev.Event]:
        if executor in self._executors:
            self._executors[executor] += self._random.randrange(1_000_000)
            written = self._executors[executor]
            yield ev.ExecutorUsage(
                **self._stamp(), executor=executor, cached_bytes=written // 4, shuffle_bytes=written
            )
            self._after(_USAGE_MS, partial(self._usage, executor))

    def _end_of_executor(self, executor: str) -> Iterator[ev.Event]:
        """Remove an executor, at once or after an announcement; some are only excluded for a while."""
        if executor not in self._executors:
            return
        way = self._random.random()
        if way < 0.1:
            yield ev.ExecutorExcluded(**self._stamp(), executor=executor, reason="failed too often")
            self._after(60 * _SECOND, partial(self._unexclude, executor))
            self._after(self._pause(self.size.executor_life_ms), partial(self._end_of_executor, executor))
        elif way < 0.4:
            yield ev.ExecutorDecommissioning(**self._stamp(), executor=executor)
            self._after(60 * _SECOND, partial(self._lose, executor))
        else:
            yield from self._lose(executor)

    def _unexclude(self, executor: str) -> Iterator[ev.Event]:
        yield ev.ExecutorUnexcluded(**self._stamp(), executor=executor)

    def _lose(self, executor: str) -> Iterator[ev.Event]:
        if self._executors.pop(executor, None) is not None:
            yield ev.ExecutorRemoved(**self._stamp(), executor=executor, reason="lost")
            self._after(30 * _SECOND, self._replace)

    def _replace(self) -> Iterator[ev.Event]:
        if len(self._executors) < self._wanted:
            executor = self._new_executor()
            host = f"host-{executor}"
            yield ev.ExecutorAdded(**self._stamp(), executor=executor, host=host, cores=_CORES)

    def _request(self, order: ac.RequestExecutors) -> Iterator[ev.Event]:
        yield from self._outcome(order)
        self._wanted = min(order.total, self.size.executors)
        for number in range(self._wanted - len(self._executors)):
            self._after(30 * _SECOND + 100 * number, self._replace)

    def _release(self, order: ac.KillExecutors | ac.DecommissionExecutors) -> Iterator[ev.Event]:
        yield from self._outcome(order)
        for executor in order.executors:
            self._after(_SECOND, partial(self._lose, executor))

    # Queries

    def _submit(self, number: int) -> Iterator[ev.Event]:
        self._counted += 1
        stateful = number % 2 == 0
        facts = ev.QueryFacts(
            query=f"00000000-0000-0000-0000-{self._counted:012}",
            name=f"name-{number}",
            stateful=stateful,
            trigger="processing_time",
            trigger_ms=self.size.trigger_ms,
            session_partitions=200,
            provider_chosen=False,
            provider="rocksdb" if stateful else "hdfs",
            checkpoint_format=2,
            in_place=not stateful,
        )
        # From a query that one core can process within its trigger to one that needs a hundred.
        work_ms = self.size.trigger_ms * 10 ** self._random.uniform(-1, 2)
        query = _Query(facts=facts, number=number, work_ms=work_ms, partitions=200)
        self._queries[facts.query] = query
        self._after(self._pause(self.size.query_failure_ms), partial(self._fail, query))
        self._after(self._pause(self.size.query_life_ms), partial(self._end, query, None))
        yield ev.QuerySubmitted(**self._stamp(), facts=facts, run=query.run)

    def _start(self, order: ac.StartQuery) -> Iterator[ev.Event]:
        query = self._queries.get(order.query)
        if query is None:
            return
        query.start += 1
        query.running = True
        if self._is_refused():
            yield self._failed(order)
        else:
            query.partitions = order.partitions or query.partitions
            yield from self._done(order)
        yield ev.QueryStarted(**self._stamp(), query=order.query, run=query.run, partitions=query.partitions)
        start = query.start
        self._after(self._random.randrange(self.size.trigger_ms), partial(self._micro_batch, query, start))

    def _micro_batch(self, query: _Query, start: int) -> Iterator[ev.Event]:
        if not query.running or query.start != start:
            return
        facts = query.facts
        if query.rescale is not None:
            self._after(_MOVE_MS, partial(self._move, query, start))
            return
        if self._random.random() < _IDLE:
            self._after(self.size.trigger_ms, partial(self._micro_batch, query, start))
            return
        slots = max(1, _CORES * len(self._executors))
        tasks = query.partitions
        work_ms = query.work_ms * self._random.uniform(0.8, 1.2)
        duration_ms = int(_BASE_MS + -(-tasks // slots) * (_OVERHEAD_MS + work_ms / tasks))
        query.batch += 1
        yield ev.BatchPlanned(
            **self._stamp(),
            query=facts.query,
            run=query.run,
            batch=query.batch,
            input_rows=int(work_ms * 100),
        )
        self._after(duration_ms, partial(self._committed, query, start, tasks, work_ms, duration_ms))

    def _committed(
        self, query: _Query, start: int, tasks: int, work_ms: float, duration_ms: int
    ) -> Iterator[ev.Event]:
        if not query.running or query.start != start:
            return
        facts, rows = query.facts, int(work_ms * 100)
        for _ in range(2 if facts.stateful else 1):
            yield StageCompleted(
                **self._stamp(),
                query=facts.query,
                batch=query.batch,
                tasks=tasks,
                duration_ms=(duration_ms - _BASE_MS) // 2,
                work=StageWork(
                    run_ms=int(tasks * _OVERHEAD_MS + work_ms),
                    gc_ms=int(work_ms / 50),
                    spilled_bytes=0,
                    longest_ms=int(_OVERHEAD_MS + work_ms / tasks),
                    median_ms=int(_OVERHEAD_MS + work_ms / tasks),
                ),
            )
        yield ev.QueryProgress(
            **self._stamp(),
            query=facts.query,
            run=query.run,
            batch=query.batch,
            started=self.now - duration_ms,
            duration_ms=duration_ms,
            input_rows=rows,
            input_rows_per_second=rows * 1_000.0 / self.size.trigger_ms,
            processed_rows_per_second=rows * 1_000.0 / duration_ms,
            state_rows=rows if facts.stateful else 0,
            state_bytes=rows * 200 if facts.stateful else 0,
            partitions=tasks,
        )
        self._after(max(0, self.size.trigger_ms - duration_ms), partial(self._micro_batch, query, start))

    def _fail(self, query: _Query) -> Iterator[ev.Event]:
        if query.running and query.facts.query in self._queries:
            query.running = False
            query.rescale = None  # the next event of this query reports it
            error = f"disk full on host-{self._random.randrange(100)}"
            if self._restarts:
                failure = ev.Failure(error=error, causes=("java.io.IOException",), offsets=f"[{query.batch}]")
                yield ev.QueryFailed(**self._stamp(), query=query.facts.query, run=query.run, failure=failure)
            else:
                yield from self._end(query, error)
        if query.facts.query in self._queries:
            self._after(self._pause(self.size.query_failure_ms), partial(self._fail, query))

    def _end(self, query: _Query, error: str | None) -> Iterator[ev.Event]:
        """End a query; its user submits the next one, with a new checkpoint."""
        if self._queries.pop(query.facts.query, None) is not None:
            query.running = False
            yield ev.QueryTerminated(**self._stamp(), query=query.facts.query, run=query.run, error=error)
            self._after(10 * _SECOND, partial(self._submit, query.number))

    def _stop(self, order: ac.CancelQuery | ac.FailQuery) -> Iterator[ev.Event]:
        query = self._queries.get(order.query)
        if query is not None:
            yield from self._outcome(order)
            yield from self._end(query, "boom" if isinstance(order, ac.FailQuery) else None)

    def _rescale(self, order: ac.Rescale) -> Iterator[ev.Event]:
        query = self._queries.get(order.query)
        if query is None or not query.running:
            yield self._failed(order)
        elif query.facts.stateful:
            if query.rescale is not None:
                yield self._failed(query.rescale)
            query.rescale = order
        elif self._is_refused():
            yield self._failed(order)
        else:
            query.partitions = order.partitions
            yield from self._done(order)

    def _move(self, query: _Query, start: int) -> Iterator[ev.Event]:
        """Carry out the rescale that waits for this boundary, and continue with the next micro-batch."""
        order, query.rescale = query.rescale, None
        if order is None or not query.running or query.start != start:
            return
        if self._is_refused():
            yield self._failed(order)
        else:
            took_ms = 0 if order.partitions == query.partitions else _MOVE_MS
            query.partitions = order.partitions
            yield from self._done(order, took_ms)
        yield from self._micro_batch(query, start)

    def _bounds_change(self) -> Iterator[ev.Event]:
        assert self.size.bounds_pause_ms is not None
        query = self._random.choice(tuple(self._queries))
        bounds = self._bounds()
        yield ev.RequirementsRequested(
            **self._stamp(), query=query, bounds={"shuffle": (bounds.lower, bounds.upper)}, by="somebody"
        )
        self._after(self._pause(self.size.bounds_pause_ms), self._bounds_change)

    def _bounds(self) -> WantedBounds:
        """Draw bounds; on average, all together want slightly less than all executors."""
        share = _CORES * self.size.executors // self.size.queries
        return WantedBounds(lower=1, upper=self._random.randint(1, max(1, 2 * share - 3)))

    # Time and outcomes

    def _after(self, ms: float, happens: Callable[[], Iterator[ev.Event]]) -> None:
        self._counted += 1
        heapq.heappush(self._due, (self.now + max(1, int(ms)), self._counted, happens))

    def _pause(self, mean_ms: int) -> float:
        return self._random.expovariate(1 / mean_ms)

    def _stamp(self) -> dict[str, Any]:
        self._events += 1
        return {"id": f"s{self._events}", "at": self.now}

    def _is_refused(self) -> bool:
        return self._random.random() < _REFUSED

    def _outcome(self, order: ac.Action) -> Iterator[ev.Event]:
        if self._is_refused():
            yield self._failed(order)
        else:
            yield from self._done(order)

    def _failed(self, order: ac.Action) -> ev.Event:
        return ev.ActionFailed(**self._stamp(), **_named(order), error="refused")

    def _done(self, order: ac.Action, took_ms: int = 10) -> Iterator[ev.Event]:
        yield ev.ActionDone(**self._stamp(), **_named(order), took_ms=took_ms)


def _named(order: ac.Action) -> dict[str, Any]:
    """Return the fields that name an order in its outcome."""
    return {"action": order.id, "query": order.query if isinstance(order, ac.QueryOrder) else None}
