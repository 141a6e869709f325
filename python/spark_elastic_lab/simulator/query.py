"""A simulated streaming query: its trigger, its micro-batches, and the boundary between two of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any, Literal

from attrs import define, evolve, field, frozen
from attrs.validators import ge, min_len

from spark_elastic.core import events as ev
from spark_elastic.core.actions import Action, PrepareMove, Rescale
from spark_elastic.core.events import SourceRead, StageCompleted
from spark_elastic_lab.simulator.batches import BatchCost
from spark_elastic_lab.simulator.cluster import Clock
from spark_elastic_lab.simulator.heard import RecordedQuery
from spark_elastic_lab.simulator.load import Load
from spark_elastic_lab.simulator.record import Commit, QueryNotes, Rescaled
from spark_elastic_lab.simulator.sharing import SharedSlots
from spark_elastic_lab.simulator.source import Source, SourceSpec

IDLE_MS = 10_000
"""Interval (ms) at which Spark reports that a query has no data (``noDataProgressEventInterval``)."""

Tell = Callable[..., None]
"""Sends an event of a kind with its fields; id and time are added."""


@frozen(kw_only=True)
class QuerySpec:
    """A query and its input.

    `load` is its load, or a text for `load_of` in `load.py`. `trigger_s` is its trigger interval (s), 0 for
    as fast as possible. It starts with `partitions` unless the policy decides otherwise. If it is `stateful`,
    a change of the count costs a pause of `move_s` (s). With `copy_s` (s) its state is copied for so long
    before, which takes nothing from its micro-batches; without, or if the copy is of no use, all is part of
    the pause. `state_mb` is the reported size of its state store. Without `moves_state` its Spark cannot move
    state, and the count stays what it was first. Raises ValueError for invalid values.
    """

    name: str = field(validator=min_len(1))
    load: str | Load = "constant"
    trigger_s: float = field(default=10.0, validator=ge(0))
    stateful: bool = True
    partitions: int = field(default=200, validator=ge(1))
    move_s: float = field(default=2.0, validator=ge(0))
    copy_s: float = field(default=0.0, validator=ge(0))
    state_mb: float = field(default=100.0, validator=ge(0))
    moves_state: bool = True
    source: SourceSpec = field(factory=SourceSpec)
    cost: BatchCost = field(factory=BatchCost)

    @property
    def trigger_ms(self) -> int:
        """The trigger interval in ms."""
        return round(self.trigger_s * 1_000)

    @property
    def facts(self) -> ev.QueryFacts:
        """The facts that the shim reports when the query is submitted."""
        return ev.QueryFacts(
            query=self.name,
            name=self.name,
            stateful=self.stateful,
            trigger="processing_time",
            trigger_ms=self.trigger_ms,
            session_partitions=self.partitions,
            provider_chosen=False,
            provider="rocksdb" if self.stateful else "hdfs",
            checkpoint_format=2 if self.stateful else 1,
            in_place=not self.stateful,
            moves_state=self.moves_state,
            prepares_moves=self.stateful and self.copy_s > 0,
            sources=(ev.SourceFacts(name="kafka", limitable=self.source.most_rows is None),),
        )

    def tasks(self, partitions: int) -> int:
        """Return the maximum number of slots that one micro-batch can use."""
        return max(self.source.partitions, partitions if self.cost.has_shuffle else 1)

    def batch_ms(self, rows: int, partitions: int, slots: float, shared: bool = False) -> float:
        """Estimate a micro-batch (ms) without jitter, on slots that are its own or `shared`."""
        source = self.source
        return self.cost.batch_ms(rows, source.partitions, source.largest, partitions, slots, shared)


@define(kw_only=True)
class SimulatedQuery:
    """One run of a query; times are ms since the start.

    It repeats its `recorded` properties, if there are any, and has `left` once it has ended as recorded.
    The running micro-batch has the number `batch`, started at `began`, and was `planned` with that many
    partitions. Its state is being copied as the order `copying` says, or `copied` for that count.
    """

    spec: QuerySpec
    source: Source
    clock: Clock
    slots: SharedSlots
    tell: Tell
    notes: QueryNotes
    chance: Random
    recorded: RecordedQuery | None = None
    left: bool = False
    phase: Literal["held", "waiting", "running", "moving", "ended"] = "held"
    partitions: int = field(init=False)
    ordered: Rescale | None = None
    copying: PrepareMove | None = None
    copied: int | None = None
    batch: int = -1
    began: int = 0
    planned: int = 0
    # The start of the micro-batch before the running one; the rows that the running one reads, and leaves.
    _last: int | None = None
    _rows: int = 0
    _behind: int = 0
    _idle_since: int = 0

    def __attrs_post_init__(self) -> None:
        self.partitions = self.spec.partitions

    @property
    def facts(self) -> ev.QueryFacts:
        """The facts that the shim reports when the query is submitted."""
        known = self.recorded
        return self.spec.facts if known is None else evolve(known.facts, query=self.spec.name)

    @property
    def begins(self) -> int:
        """The time of its submission."""
        return 0 if self.recorded is None else self.recorded.begins

    @property
    def run(self) -> str:
        """The id of its run."""
        return f"run-{self.spec.name}"

    def start(self, partitions: int | None) -> None:
        """Start the query, with another number of partitions if one was ordered."""
        self.partitions = partitions or self.partitions
        self.notes.partitions.note(self.clock.now, self.partitions)
        self._say(ev.QueryStarted, partitions=self.partitions)
        self._idle_since = self.clock.now
        self._boundary()

    def rescale(self, order: Rescale) -> None:
        """Accept an order; it applies at once to a query without state, else at the next batch boundary."""
        if self.phase == "ended":
            self._failed(order, "the query has ended")
        elif not self.spec.stateful:
            self._use(order.partitions, 0)
            self._done(order, 0)
        else:
            if self.ordered is not None:
                self._failed(self.ordered, "another rescale was ordered")
            self.ordered = order
            if self.phase == "waiting":
                self._boundary()

    def prepare(self, order: PrepareMove) -> None:
        """Begin to copy the state, or drop the copy; the order replaces the one before."""
        if self.phase == "ended":
            self._failed(order, "the query has ended")
            return
        if self.copying is not None:
            self._failed(self.copying, "another one was ordered after it")
        self.copying = None
        self.clock.forget((self.spec.name, "copy"))
        if order.partitions in (self.partitions, self.copied):
            self.copied = self.copied if order.partitions == self.copied else None
            self._done(order, 0)
        else:
            self.copying, self.copied = order, None
            took = round(self.spec.copy_s * 1_000)
            self.clock.after(took, lambda: self._copied(order, took), (self.spec.name, "copy"))

    def _copied(self, order: PrepareMove, took: int) -> None:
        self.copying, self.copied = None, order.partitions
        self._done(order, took)

    def end(self, error: str | None) -> None:
        """End the query permanently."""
        if self.phase == "running":
            self.slots.end(self.spec.name, self.clock.now)
        self.phase = "ended"
        self.clock.forget((self.spec.name, "copy"))
        self.clock.forget((self.spec.name, "next"))
        self.clock.forget((self.spec.name, "idle"))
        self._say(ev.QueryTerminated, error=error)

    def leave(self) -> None:
        """End the query as recorded; its unread rows no longer count as waiting."""
        if self.phase != "ended":
            now, source = self.clock.now, self.source
            self.notes.commits.append(Commit(now, source.waits_since, math.inf, source.uncommitted(now), 0))
            self.left = True
            self.end(None)

    def committed(self) -> None:
        """End the running micro-batch and report it."""
        now, source, spec = self.clock.now, self.source, self.spec
        took = now - self.began
        slots = self.slots.running[spec.name].slots
        self.slots.end(spec.name, now)
        since, before = source.waits_since, source.uncommitted(now)
        source.commit()
        self.notes.commits.append(Commit(now, since, source.waits_since, before, source.uncommitted(now)))
        self.notes.took.append(took)
        if spec.cost.has_shuffle and slots > 0:
            share = spec.cost.work_ms(self._rows, self.partitions, slots)
            share /= spec.batch_ms(self._rows, self.partitions, slots)
            stage = {"batch": self.batch, "tasks": self.partitions, "duration_ms": int(took * share)}
            self.tell(StageCompleted, query=spec.name, **stage)
        waited = 0 if self._last is None else self.began - self._last
        self._last = self.began
        fullest = source.fullest(self._rows + self._behind)
        read = SourceRead(rows=self._rows, tasks=spec.source.partitions, fullest=fullest)
        others = (SourceRead(rows=0),) * (len(self.facts.sources) - 1)
        self._say(
            ev.QueryProgress,
            batch=self.batch,
            started=self.began,
            duration_ms=took,
            input_rows=self._rows,
            input_rows_per_second=self._rows * 1_000 / waited if waited else 0.0,
            processed_rows_per_second=self._rows * 1_000 / max(1, took),
            state_bytes=int(spec.state_mb * 1e6) if spec.stateful else 0,
            partitions=self.planned,
            offsets_behind=source.behind(self._behind),
            records_behind=self._behind,
            sources=(read, *others),
        )
        self._idle_since = now
        self._boundary()

    def _boundary(self) -> None:
        """Between two micro-batches, move the state if that was ordered, then wait for the trigger."""
        order, self.ordered = self.ordered, None
        self.phase = "waiting"
        if order is None:
            self._wait()
        elif order.partitions == self.partitions:
            self._done(order, 0)
            self._wait()
        else:
            self.phase = "moving"
            self.clock.forget((self.spec.name, "idle"))
            prepared, self.copied = self.copied == order.partitions, None
            took_s = self.spec.move_s + (0 if prepared else self.spec.copy_s)
            pause = max(1, round(took_s * 1_000))
            self.clock.after(pause, lambda: self._moved(order, pause, prepared), (self.spec.name, "next"))

    def _moved(self, order: Rescale, pause: int, prepared: bool) -> None:
        self._use(order.partitions, pause)
        self._done(order, pause, prepared)
        self._boundary()

    def _use(self, partitions: int, pause: int) -> None:
        before, self.partitions = self.partitions, partitions
        self.notes.partitions.note(self.clock.now, partitions)
        if before != partitions:
            self.notes.rescales.append(Rescaled(self.clock.now, before, partitions, pause))

    def _wait(self, *, found_nothing: bool = False) -> None:
        """Schedule the next micro-batch at its trigger or, without data, at the first trigger with a row.

        As in Spark, its trigger is the first one after the start of the last micro-batch. If that has passed,
        the micro-batch starts now.
        """
        now, step = self.clock.now, max(1, self.spec.trigger_ms)
        ahead = 0 if self.recorded is None else self.recorded.ahead_ms
        last = now if found_nothing else self._last
        due: float = now if last is None else max(now, ((last + ahead) // step + 1) * step - ahead)
        row = self.source.next_unread
        if row > due and row < math.inf:
            due = -(-(row + ahead) // step) * step - ahead
        if row < math.inf:
            self.clock.at(due, self._begin, (self.spec.name, "next"))
        self.clock.at(self._idle_since + IDLE_MS, self._idle, (self.spec.name, "idle"))

    def _idle(self) -> None:
        self._say(ev.QueryIdle)
        self._idle_since = self.clock.now
        self.clock.after(IDLE_MS, self._idle, (self.spec.name, "idle"))

    def _begin(self) -> None:
        now = self.clock.now
        self._rows = rows = self.source.take(now)
        if rows == 0:
            self._wait(found_nothing=True)
            return
        self.clock.forget((self.spec.name, "idle"))
        self._behind = self.source.available(now)
        self.batch += 1
        self.began, self.phase = now, "running"
        self._say(ev.BatchPlanned, batch=self.batch, input_rows=rows, records_behind=self._behind)
        factor = self._factor()
        self.planned = partitions = self.partitions
        self.slots.begin(
            self.spec.name,
            self.spec.tasks(partitions),
            lambda slots, shared: factor * self.spec.batch_ms(rows, partitions, slots, shared),
            now,
        )

    def _factor(self) -> float:
        """Return the ratio of duration to cost for a micro-batch that starts now."""
        if self.recorded is not None:
            return self.recorded.factor(self.clock.now)
        jitter = self.spec.cost.jitter
        return self.chance.lognormvariate(-(jitter**2) / 2, jitter) if jitter else 1.0

    def _say(self, kind: type[ev.Event], **fields: Any) -> None:
        self.tell(kind, query=self.spec.name, run=self.run, **fields)

    def _done(self, order: Action, took_ms: int, prepared: bool = False) -> None:
        done = {"action": order.id, "query": self.spec.name, "took_ms": took_ms, "prepared": prepared}
        self.tell(ev.ActionDone, **done)

    def _failed(self, order: Action, error: str) -> None:
        self.tell(ev.ActionFailed, action=order.id, query=self.spec.name, error=error)
