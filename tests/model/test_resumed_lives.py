"""Random lives whose schedulers are saved and restored all the time."""

from __future__ import annotations

import json

import pytest
from attrs import define, field
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from spark_elastic.core import events as ev
from spark_elastic.core.actions import (
    Action,
    CancelQuery,
    FailQuery,
    PrepareMove,
    Rescale,
    StartQuery,
    TakeSavepoint,
)
from spark_elastic.core.scheduler import Scheduler
from tests.model.test_lives import Lives
from tests.unit.core.builder import Scene

pytestmark = pytest.mark.long


def read_back(scheduler: Scheduler) -> Scheduler:
    """Return a copy of the scheduler that went through JSON."""
    return Scheduler.restore(json.loads(json.dumps(scheduler.save())))


@define
class TwinScheduler(Scheduler):
    """A scheduler with a twin, which is restored now and then and must make the same decisions."""

    twin: Scheduler = field(init=False)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.twin = Scheduler(self.settings)

    def handle(self, event: ev.Event) -> tuple[Action, ...]:
        actions = super().handle(event)
        assert self.twin.handle(event) == actions
        return actions


@define
class TwinScene(Scene):
    """A scene whose scheduler has a twin."""

    scheduler: TwinScheduler = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.scheduler = TwinScheduler(self.settings)


class TwinLives(Lives):
    """Lives in which a restored scheduler continues as if nothing had happened."""

    new_scene = TwinScene

    @rule()
    def twin_is_read_back(self) -> None:
        assert isinstance(self.scene, TwinScene)
        twin = self.scene.scheduler.twin
        again = read_back(twin)
        assert again == twin
        assert again.save() == twin.save()
        again.validate()
        self.scene.scheduler.twin = again


class ResumedLives(Lives):
    """Lives of policy processes that die, and whose successors continue."""

    forgets = True

    @rule(data=st.data(), gap_ms=st.sampled_from([0, 700, 10_000]))
    def policy_dies_and_goes_on(self, data: st.DataObject, gap_ms: int) -> None:
        """Each open order is lost, carried out unreported, or still under way when
        the next process starts.
        """
        scheduler = read_back(self.scene.scheduler)
        for order in tuple(self.open):
            if order not in self.open:
                continue  # a newer rescale, carried out before, has replaced it
            fate = data.draw(st.sampled_from(["lost", "unheard", "under way"]))
            if fate != "under way":
                self.open.remove(order)
            if fate == "unheard":
                self.carry_out(order)
        self.fresh = {query for query in self.phase if self.is_known_as_moved(scheduler, query)}
        self.scene.now += gap_ms
        self.scene.scheduler = scheduler
        self.scene.timers.clear()
        self.send(ev.Snapshot, **self.world())
        self.all_timers_are_set()

    def is_known_as_moved(self, scheduler: Scheduler, query: str) -> bool:
        """Return whether the next process knows of the move, or sees it from the count in the snapshot."""
        record = scheduler._machines[query].record
        other = query in self.partitions and record.partitions not in (None, self.partitions[query])
        return record.facts.stateful and (record.moves.moved or other)

    def carry_out(self, order: Action) -> None:
        """Carry out an order; the process that gave it is dead and receives no report."""
        match order:
            case StartQuery(query=query) if self.phase.get(query) in ("held", "failed"):
                self.hears_how_to_begin(order)
                if order.partitions is not None:
                    self.use(query, order.partitions)
                known = self.facts[query].checkpoint_partitions or self.facts[query].session_partitions
                self.partitions.setdefault(query, known)
                self.phase[query] = "running"
            case FailQuery(query=query) if self.phase.get(query) in ("held", "failed") or order.message:
                self.ends_unheard(query)
            case CancelQuery(query=query):
                self.ends_unheard(query)
            case TakeSavepoint(query=query) if order.stop and self.phase.get(query) == "running":
                self.ends_unheard(query)
            case Rescale(query=query) if self.phase.get(query) == "running":
                self.open = [open for open in self.open if open not in self.rescales(query, before=order)]
                self.use(query, order.partitions)
                self.copies.pop(query, None)
            case PrepareMove(query=query) if self.phase.get(query) == "running":
                older = [copy for copy in self.ordered_copies(query) if int(copy.id[1:]) < int(order.id[1:])]
                self.open = [open for open in self.open if open not in older]
                self.copies.pop(query, None)
                if order.partitions != self.partitions[query]:
                    self.copies[query] = order.partitions

    def ends_unheard(self, query: str) -> None:
        self.phase.pop(query, None)
        self.partitions.pop(query, None)
        self.failures.pop(query, None)

    def all_timers_are_set(self) -> None:
        machines = self.scene.scheduler._machines.values()
        timers = (machine.record.timer for machine in machines)
        wanted = {timer.id: timer.at for timer in timers if timer}
        assert {name: self.scene.timers[name].at for name in wanted} == wanted

    @precondition(lambda self: self.phase)
    @rule(data=st.data())
    def nothing_is_blocked_by_what_was_lost(self, data: st.DataObject) -> None:
        self.policy_dies_and_goes_on(data, 700)
        self.nothing_is_blocked()


for lives in (TwinLives, ResumedLives):
    lives.TestCase.settings = settings(Lives.TestCase.settings, max_examples=15)
TestTwinLives = TwinLives.TestCase
TestResumedLives = ResumedLives.TestCase
