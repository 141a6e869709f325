"""The same lives, with schedulers that are written down and read back all the time."""

from __future__ import annotations

import json

from attrs import define, field
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from spark_elastic.core import events as ev
from spark_elastic.core.actions import Action, CancelQuery, FailQuery, SetParallelism, StartQuery, StopQuery
from spark_elastic.core.scheduler import Scheduler
from tests.model.test_lives import FACTS, QUERIES, Lives
from tests.unit.core.builder import Scene


def read_back(scheduler: Scheduler) -> Scheduler:
    """Give another scheduler, by way of a text."""
    return Scheduler.restore(json.loads(json.dumps(scheduler.save())))


@define
class TwinScheduler(Scheduler):
    """A scheduler with a twin, which is read back now and then and has to decide the same."""

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
    """Lives in which what is read back goes on as if nothing had been."""

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
    """Lives of policy processes that die, and are followed by others that go on."""

    @rule(data=st.data(), gap_ms=st.sampled_from([0, 700, 10_000]))
    def policy_dies_and_goes_on(self, data: st.DataObject, gap_ms: int) -> None:
        """Each open order is lost, or carried out unheard, or still under way when the next one begins."""
        scheduler = read_back(self.scene.scheduler)
        for order in tuple(self.open):
            fate = data.draw(st.sampled_from(["lost", "unheard", "under way"]))
            if fate != "under way":
                self.open.remove(order)
            if fate == "unheard":
                self.carry_out(order)
        self.scene.now += gap_ms
        self.scene.scheduler = scheduler
        self.scene.timers.clear()
        self.send(ev.Snapshot, **self.world())
        self.all_timers_are_set()

    def carry_out(self, order: Action) -> None:
        """Do what was ordered; who ordered it is dead and hears nothing of it."""
        match order:
            case StartQuery(query=query) if self.phase.get(query) in ("held", "stopped", "failed"):
                if order.partitions is not None:
                    self.partitions[query] = order.partitions
                self.partitions.setdefault(query, self.facts[query].session_partitions)
                self.phase[query] = "running"
            case StopQuery(query=query) if self.phase.get(query) == "running":
                self.phase[query] = "stopped"
            case FailQuery(query=query) | CancelQuery(query=query):
                self.phase.pop(query, None)
                self.partitions.pop(query, None)
                self.failures.pop(query, None)
            case SetParallelism(query=query) if self.phase.get(query) == "running":
                self.partitions[query] = order.partitions

    def all_timers_are_set(self) -> None:
        machines = self.scene.scheduler._machines.values()
        wanted = {machine.timer.id: machine.timer.at for machine in machines if machine.timer}
        assert {timer: self.scene.timers.get(timer) for timer in wanted} == wanted

    @rule(queries=st.lists(QUERIES, min_size=1, max_size=3), facts=FACTS, cores=st.integers(1, 4))
    def queries_run(self, queries: list[str], facts: ev.QueryFacts, cores: int) -> None:
        self.executor_comes("4", cores)
        for query in queries:
            self.submitted(query, facts)
        self.carry_out_all()

    @precondition(lambda self: self.phase)
    @rule(more=st.booleans(), ms=st.sampled_from([100, 4_000, 30_000]))
    def slots_change(self, more: bool, ms: int) -> None:
        if more:
            self.executor_comes("3", 4)
        else:
            self.executor_goes("3")
            for query in self.phase:
                self.batch_is_committed(query, 300, 400)
        self.let_pass(ms)

    def carry_out_all(self) -> None:
        for _ in range(30):
            while self.open:
                self.answer(self.open[0], True)
            if all(phase == "running" for phase in self.phase.values()):
                return
            self.let_pass(60_000)

    @precondition(lambda self: self.phase)
    @rule(data=st.data())
    def nothing_is_blocked(self, data: st.DataObject) -> None:
        """Whatever was lost: when orders are carried out and time passes, every query gets somewhere."""
        self.policy_dies_and_goes_on(data, 700)
        self.carry_out_all()
        for query, phase in self.phase.items():
            machine = self.scene.scheduler._machines[query]
            short = self.scene.scheduler.slots.total < machine.requirements.lower
            waits = short and machine.state.name == "WaitingForResources"
            assert waits or (phase == "running" and machine.state.name == "Executing"), machine.state
            # A copy of which nobody has heard the end keeps nothing from happening.
            orders = {order.kind for order in machine.record.orders.values()} - {"savepoint"}
            in_force = machine.record.target is None and not orders
            assert waits or in_force, machine.record


for lives in (TwinLives, ResumedLives):
    lives.TestCase.settings = settings(Lives.TestCase.settings, max_examples=15)
TestTwinLives = TwinLives.TestCase
TestResumedLives = ResumedLives.TestCase
