"""A simulated driver: it carries out the scheduler's orders as the shim does, and reports what happens.

An event reaches the scheduler once its cause is complete, and the resulting orders are carried out before
anything else happens, with the outcomes that they have in the shim (`QueryRun.order`, `Boundary.carryOut`,
`ElasticDriver.act`). Nothing of the core is replaced. All randomness comes from generators seeded by scenario
and name, so the same scenario gives the same run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any

import attrs
from attrs import define

from spark_elastic.core import actions as ac
from spark_elastic.core import events as ev
from spark_elastic.core.keys.policies import short
from spark_elastic.core.policies.policy import AskPolicy, Policy, PolicyAnswered
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.policies.answers import BadAnswer, ask
from spark_elastic.policies.loading import make
from spark_elastic.settings import Settings, load
from spark_elastic_lab.simulator.batches import SimulatedBatch
from spark_elastic_lab.simulator.cluster import Clock, Cluster, Notices
from spark_elastic_lab.simulator.load import Load
from spark_elastic_lab.simulator.query import SimulatedQuery
from spark_elastic_lab.simulator.record import Commit, Notes, QueryNotes
from spark_elastic_lab.simulator.scenario import Scenario
from spark_elastic_lab.simulator.sharing import SharedSlots
from spark_elastic_lab.simulator.source import Source

# ---- Custom policies in a simulation: asked synchronously, so that the same scenario gives the same run.


class CustomPolicies:
    """The custom policies that settings name, each created once. Raises Unusable if one cannot be created."""

    def __init__(self, settings: Settings) -> None:
        self._policies: Mapping[str, Policy] = {
            name: make(name, settings.policy_options.get(short(name), {}))
            for name in settings.custom_policies
        }

    def answer(self, question: AskPolicy) -> dict[str, Any]:
        """Return the fields of a `PolicyAnswered` for a question, without its id and time."""
        assert question.view is not None
        answered = {"policy": question.policy, "asked": question.id}
        try:
            wish = ask(question.policy, self._policies[question.policy], question.view)
        except BadAnswer as error:
            return {**answered, "error": str(error)}
        return {**answered, "wish": wish}


EPOCH_MS = 1_767_571_200_000
"""The start (epoch ms) of every simulation: Monday, 5 January 2026, 00:00 UTC."""

_START_MS = 200
_STAMP = ("id", "at")


@define(init=False)
class Driver:
    """An application with its queries and executors, and its scheduler.

    `listeners` get each event after the scheduler.
    """

    scenario: Scenario
    scheduler: Scheduler
    clock: Clock
    cluster: Cluster
    notes: Notes
    slots: SharedSlots
    queries: dict[str, SimulatedQuery]
    _custom: CustomPolicies
    batch: SimulatedBatch
    listeners: list[Callable[[ev.Event], None]]
    _events: deque[ev.Event]
    _count: int
    _version: int

    def __init__(self, scenario: Scenario, scheduler: Scheduler, loads: Mapping[str, Load]) -> None:
        self.scenario, self.scheduler = scenario, scheduler
        self._custom = CustomPolicies(load(scenario.settings))
        self.clock, self.notes, self.slots = Clock(), Notes(), SharedSlots()
        self.listeners, self._events, self._count, self._version = [], deque(), 0, 0
        notices = Notices(joined=self._joined, leaving=self._leaving, gone=self._gone)
        chance = Random(f"{scenario.seed}:cluster")
        self.cluster = Cluster(scenario.cluster, self.clock, chance, notices)
        self.queries = {
            spec.name: SimulatedQuery(
                spec=spec,
                source=Source(spec.source, loads[spec.name]),
                clock=self.clock,
                slots=self.slots,
                tell=self.tell,
                notes=self.notes.queries.setdefault(spec.name, QueryNotes()),
                chance=Random(f"{scenario.seed}:{spec.name}"),
                recorded=None if scenario.recorded is None else scenario.recorded.queries.get(spec.name),
            )
            for spec in scenario.queries
        }
        self.batch = SimulatedBatch(
            specs=scenario.batch,
            clock=self.clock,
            slots=self.slots,
            tell=self.tell,
            notes=self.notes.batch,
            epoch=EPOCH_MS,
        )

    def run(self) -> None:
        """Run the simulation from its start to its end."""
        executors = [self._info(executor) for executor in self.cluster.live]
        self.tell(
            ev.Snapshot,
            application="app-simulated",
            application_name="simulated",
            spark_version="4.2.0",
            conf=self.scenario.spark_conf,
            executors=tuple(executors),
        )
        self._executors_changed()
        # What was said when a query was submitted was said before: the policy file is read at the start.
        for at, event in () if self.scenario.recorded is None else self.scenario.recorded.said:
            said = attrs.asdict(event, recurse=False, filter=lambda one, _: one.name not in _STAMP)
            self.clock.at(at, partial(self.tell, type(event), **said))
        for query in self.queries.values():
            query.notes.first_row = query.source.waits_since
            self.clock.at(query.begins, partial(self._submit, query))
            if query.recorded is not None and query.recorded.ends is not None:
                self.clock.at(query.recorded.ends, query.leave)
        self.batch.begin(self.scenario.end_ms)
        self._settle()
        for _ in self.clock.run(self.scenario.end_ms):
            self._settle()
        end = self.clock.now
        for query in self.queries.values():
            if query.left:
                continue
            since, rows = query.source.waits_since, query.source.uncommitted(end)
            query.notes.commits.append(Commit(end, since, since, rows, rows))

    def tell(self, kind: type[ev.Event], **fields: Any) -> None:
        """Queue an event that happens now."""
        self._count += 1
        if "started" in fields:
            fields["started"] += EPOCH_MS
        self._events.append(kind(id=f"s{self._count}", at=EPOCH_MS + self.clock.now, **fields))

    def _settle(self) -> None:
        """Pass queued events to the scheduler, carry out its orders, and schedule the next completion."""
        while self._events:
            event = self._events.popleft()
            for action in self.scheduler.handle(event):
                self._carry_out(action)
            for listener in self.listeners:
                listener(event)
        self.notes.paid.note(self.clock.now, self.cluster.paid)
        self.notes.wanted.note(self.clock.now, min(self.cluster.target, self.scenario.cluster.quota))
        if self._version != self.slots.version:
            self._version = self.slots.version
            through = self.slots.next_end()
            self.clock.forget("through")
            if through is not None and through[0] < float("inf"):
                self.clock.at(through[0], partial(self._through, through[1]), "through")

    def _through(self, name: str) -> None:
        if name in self.batch.running:
            self.batch.through(name)
        else:
            self.queries[name].committed()

    def _submit(self, query: SimulatedQuery) -> None:
        self.tell(ev.QuerySubmitted, facts=query.facts, run=query.run)

    def _carry_out(self, action: ac.Action) -> None:
        match action:
            case ac.Report(decision=decision):
                self.notes.reasons[decision.reason] += 1
            case ac.SetTimer(timer=timer, at=at):
                self.clock.at(at - EPOCH_MS, lambda: self._timer(action), ("timer", timer))
            case ac.CancelTimer(timer=timer):
                self.clock.forget(("timer", timer))
            case AskPolicy():
                answer = self._custom.answer(action)
                if "error" in answer:
                    self.notes.failed[action.policy, answer["error"]] += 1
                self.tell(PolicyAnswered, **answer)
            case ac.StartQuery(query=query):
                self.clock.after(self._start_ms(query), lambda: self._start(action))
            case ac.Rescale(query=query):
                self.queries[query].rescale(action)
            case ac.PrepareMove(query=query):
                self.queries[query].prepare(action)
            case ac.CancelQuery(query=query):
                self._done(action)
                self.queries[query].end(None)
            case ac.FailQuery(query=query, message=message):
                self._done(action)
                self.queries[query].end(message or "failed")
            case ac.RequestExecutors(total=total):
                self._answer(action, self.cluster.request(total))
            case ac.KillExecutors(executors=executors):
                self._done(action)
                self.cluster.release(executors, at_once=True)
            case ac.DecommissionExecutors(executors=executors):
                self._done(action)
                self.cluster.release(executors, at_once=False)
            case ac.LimitRows(query=query, sources=sources):
                self._done(action)
                self.queries[query].source.limit = sum(source.rows for source in sources)
            case ac.HoldQuery() | ac.BoundSources() | ac.KeepText() | ac.DropOriginal() | ac.Configure():
                self._done(action)
            case _:
                raise TypeError(f"{type(action).__name__} is nothing that a simulated driver can do")

    def _start(self, order: ac.StartQuery) -> None:
        query = self.queries[order.query]
        if query.phase == "held":
            self._done(order, self._start_ms(order.query))
            query.start(order.partitions)
        else:
            self._answer(order, "the query does not wait for a start")

    def _start_ms(self, query: str) -> int:
        known = self.queries[query].recorded
        return _START_MS if known is None or known.start_ms is None else known.start_ms

    def _timer(self, timer: ac.SetTimer) -> None:
        self.tell(ev.TimerFired, timer=timer.timer, query=timer.query)

    def _answer(self, order: ac.Action, error: str | None) -> None:
        if error is None:
            self._done(order)
        else:
            self.notes.refused += 1
            self.tell(ev.ActionFailed, action=order.id, query=ac.ordered_for(order), error=error)

    def _done(self, order: ac.Action, took_ms: int = 0) -> None:
        self.tell(ev.ActionDone, action=order.id, query=ac.ordered_for(order), took_ms=took_ms)

    def _info(self, executor: str) -> ev.ExecutorInfo:
        cores = self.scenario.cluster.cores
        return ev.ExecutorInfo(executor=executor, host=f"host-{executor}", cores=cores)

    def _joined(self, executor: str) -> None:
        info = self._info(executor)
        self.tell(ev.ExecutorAdded, executor=executor, host=info.host, cores=info.cores)
        self._executors_changed()

    def _leaving(self, executor: str) -> None:
        self.tell(ev.ExecutorDecommissioning, executor=executor)
        self._executors_changed()

    def _gone(self, executor: str, lost: bool) -> None:
        self.notes.lost += lost
        self.tell(ev.ExecutorRemoved, executor=executor, reason="lost" if lost else "given back")
        self._executors_changed(lost)

    def _executors_changed(self, lost: bool = False) -> None:
        self.notes.there.note(self.clock.now, self.cluster.usable)
        self.slots.resize(self.cluster.usable * self.scenario.cluster.cores, self.clock.now, lost)
