"""A stand-in for the shim and its cluster: carries out orders, late or badly, and reports the outcomes."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from hypothesis.stateful import RuleBasedStateMachine

from spark_elastic.core import events as ev
from spark_elastic.core.actions import (
    Action,
    CancelQuery,
    DecommissionExecutors,
    FailQuery,
    HoldQuery,
    KillExecutors,
    PrepareMove,
    RequestExecutors,
    Rescale,
    StartQuery,
    TakeSavepoint,
    ordered_for,
)
from spark_elastic.core.settings import CoreSettings
from tests.unit.core.builder import Scene, snapshot

ABOUT_EXECUTORS = RequestExecutors | KillExecutors | DecommissionExecutors
ORDERS = StartQuery | Rescale | PrepareMove | FailQuery | CancelQuery | TakeSavepoint | ABOUT_EXECUTORS


class StandIn(RuleBasedStateMachine):
    """The shim's side: the phase of each query, the open orders and the partitions in force.

    `stopped` are queries that were stopped and whose end was not reported to the policy yet.
    `fresh` are queries that have committed no micro-batch since the policy learned that their state was
    moved.
    `excused` allows more to run than the lower bounds permit: slots were lost, or other bounds were declared.
    `copies` are the counts for which the state of a query is copied; orders of copies that the policy
    no longer waits for are `given_up`.
    `changes` are the events that change bounds; for queries in `taken_back`, the settings count.
    """

    new_scene = Scene

    def __init__(self) -> None:
        super().__init__()
        self.scene = self.new_scene()
        self.phase: dict[str, str] = {}
        self.facts: dict[str, ev.QueryFacts] = {}
        self.partitions: dict[str, int] = {}
        self.open: list[Action] = []
        self.failures: dict[str, ev.Failure] = {}
        self.fresh: set[str] = set()
        self.copies: dict[str, int] = {}
        self.given_up: set[str] = set()
        self.stopped: set[str] = set()
        self.bounds: dict[str, tuple[int, int]] = {}
        self.taken_back: frozenset[str] = frozenset()
        self.changes: set[str] = set()
        self.excused = False
        self.runs = 0

    def send(self, kind: type[ev.Event], **fields: Any) -> None:
        before = self.scene.scheduler.slots.total
        actions = self.scene.send(kind, **fields)
        self.excused |= self.scene.scheduler.slots.total < before
        self.see(actions)

    def see(self, actions: tuple[Action, ...]) -> None:
        """Process the actions that an event led to."""
        for action in actions:
            if isinstance(action, HoldQuery):
                self.hears_how_to_begin(action)
            self.take(action)

    def take(self, action: Action) -> None:
        """Keep an action if it is an order."""
        if isinstance(action, ORDERS):
            self.open.append(action)
        if isinstance(action, TakeSavepoint) and action.stop:
            self.given_up.update(copy.id for copy in self.ordered_copies(action.query))

    def hears_how_to_begin(self, order: StartQuery | HoldQuery) -> None:
        if order.rescalable and self.phase.get(order.query) == "held":
            facts = self.facts[order.query]
            assert facts.stateful
            assert facts.checkpoint_partitions is None
            self.facts[order.query] = evolve(facts, provider="rocksdb", checkpoint_format=2)

    def given_to(self, query: str) -> CoreSettings:
        """Return the settings of a query: its own, or those of the application."""
        own = self.scene.scheduler._machines[query].record.settings
        return own or self.scene.settings

    # Outcomes of orders

    def answer(self, order: Action, well: bool) -> None:
        self.open.remove(order)
        self.scene.now += 100
        match order:
            case StartQuery(query=query) if self.phase.get(query) in ("held", "failed"):
                # An order of an earlier policy process is carried out, even if this process would give no
                # such order.
                state = self.scene.scheduler._machines[query].record.state.name
                self.excused |= state == "WaitingForResources"
                self.hears_how_to_begin(order)
                if well and order.partitions is not None:
                    self.use(query, order.partitions)
                self.phase[query] = "running"  # any other start order for it now comes too late
                self.outcome(order, well)
                self.runs_now(query)
            case Rescale(query=query):
                self.answer_rescale(order, well)
            case PrepareMove():
                self.answer_copy(order, well)
            case FailQuery(query=query) if self.phase.get(query) in ("held", "failed"):
                self.outcome(order, well)
                if well:
                    self.ends(query, "boom")
                else:
                    self.excused = True
                    self.runs_now(query)
            case FailQuery(query=query, message=str()) if self.phase.get(query) == "running":
                # It has waited too long without executors; a slow end is answered late, but comes.
                self.outcome(order, well)
                self.ends(query, order.message)
            case CancelQuery(query=query) if query in self.phase:
                # A slow stop is answered late, but the query ends nevertheless.
                self.stopped.add(query)
                self.outcome(order, well)
                self.stopped.discard(query)
                self.ends(query, None)
            case TakeSavepoint(query=query, target=target) if well and query in self.phase:
                taken = {"path": f"{target}/savepoint", "batch": 7, "bytes": 1}
                self.send(ev.SavepointTaken, query=query, run=f"r{query}", action=order.id, **taken)
                self.outcome(order, well)
                if order.stop and self.phase.get(query) == "running":
                    self.ends(query, None)
            case RequestExecutors():
                self.outcome(order, well)  # executors are added by a rule of their own
            case KillExecutors(executors=executors) | DecommissionExecutors(executors=executors) if well:
                self.outcome(order, well)
                for executor in executors:
                    self.send(ev.ExecutorRemoved, executor=executor)
            case _:
                self.outcome(order, False)

    def answer_rescale(self, order: Rescale, well: bool) -> None:
        query = order.query
        runs = self.phase.get(query) == "running"
        older = self.rescales(query, before=order)
        if runs and older and self.facts[query].stateful:
            # It replaces the older ones and remains open.
            self.open.append(order)
            for replaced in older:
                self.open.remove(replaced)
                self.outcome(replaced, False)
            return
        for earlier in older:
            self.answer(earlier, well)
        if runs and well:
            self.use(query, order.partitions)
        prepared = self.copies.pop(query, None) == order.partitions
        self.outcome(order, runs and well, prepared=prepared)

    def answer_copy(self, order: PrepareMove, well: bool) -> None:
        """Copy the state, or drop the copy; a newer order has replaced the older ones."""
        query = order.query
        self.copies.pop(query, None)
        for older in self.ordered_copies(query):
            if int(older.id[1:]) < int(order.id[1:]):
                self.open.remove(older)
                self.outcome(older, False)
        newest = not self.ordered_copies(query)
        copied = newest and well and self.phase.get(query) == "running"
        if copied and order.partitions != self.partitions[query]:
            self.copies[query] = order.partitions
        self.outcome(order, copied)

    def ordered_copies(self, query: str) -> list[PrepareMove]:
        """Return the open orders to copy the state of a query in the order they were given."""
        found = [order for order in self.open if isinstance(order, PrepareMove) and order.query == query]
        return sorted(found, key=lambda order: int(order.id[1:]))

    def rescales(self, query: str, before: Rescale | None = None) -> list[Rescale]:
        """Return the open rescales of a query in the order they were given."""
        found = [order for order in self.open if isinstance(order, Rescale) and order.query == query]
        found.sort(key=lambda order: int(order.id[1:]))
        return [order for order in found if before is None or int(order.id[1:]) < int(before.id[1:])]

    def use(self, query: str, count: int) -> None:
        """Bring another count into force; the policy is about to be notified."""
        facts = self.facts[query]
        before = self.partitions.get(query, facts.checkpoint_partitions)
        if facts.stateful and before not in (None, count):
            self.fresh.add(query)
        self.partitions[query] = count

    def outcome(self, order: Action, well: bool, **more: bool) -> None:
        if well:
            self.send(ev.ActionDone, action=order.id, query=ordered_for(order), took_ms=100, **more)
        else:
            self.send(ev.ActionFailed, action=order.id, query=ordered_for(order), error="no")

    def runs_now(self, query: str) -> None:
        self.phase[query] = "running"
        facts = self.facts[query]
        known = facts.checkpoint_partitions or facts.session_partitions
        count = self.partitions.setdefault(query, known)
        self.send(ev.QueryStarted, query=query, run=f"r{query}", partitions=count)

    def ends(self, query: str, error: str | None) -> None:
        if self.phase.pop(query, None) is not None:
            self.partitions.pop(query, None)
            self.failures.pop(query, None)
            self.fresh.discard(query)
            self.copies.pop(query, None)
            self.see(self.scene.terminated(query, error, f"r{query}"))

    # Time and state of the world

    def let_pass(self, ms: int) -> None:
        before = len(self.scene.log)
        self.scene.advance(ms)
        for _, actions in self.scene.log[before:]:
            for action in actions:
                self.take(action)

    def carry_out_all(self) -> None:
        for _ in range(30):
            while self.open:
                self.answer(self.open[0], True)
            if all(phase == "running" for phase in self.phase.values()):
                return
            self.let_pass(60_000)

    def world(self) -> dict[str, Any]:
        """Return the content of a snapshot."""
        queries = [
            ev.QueryInfo(
                facts=self.facts[query],
                run=f"r{query}",
                run_state=phase,  # type: ignore[arg-type]
                partitions=self.partitions.get(query),
                failure=self.failures.get(query) if phase == "failed" else None,
            )
            for query, phase in self.phase.items()
        ]
        return snapshot(self.scene.scheduler.slots.executors.values(), queries)
