"""Invariants of the policy in random lives, and checks of each of its orders."""

from __future__ import annotations

from typing import TypeGuard

from hypothesis.stateful import invariant

from spark_elastic.core.actions import (
    Action,
    CancelQuery,
    HoldQuery,
    PrepareMove,
    Report,
    Rescale,
    StartQuery,
)
from spark_elastic.core.events import QueryFacts
from spark_elastic.core.rescale.concurrency import PATIENCE_MS
from spark_elastic.core.rescale.situation import GROWTH, makes_rescalable
from spark_elastic.core.settings import CoreSettings
from tests.model.stand_in import StandIn
from tests.unit.runtime.seen import seen


class Checked(StandIn):
    """Checks every order when it is given, and the invariants between events.

    `moves_since` maps a query to the time of the first open order that moves its state.
    """

    forgets = False

    def __init__(self) -> None:
        super().__init__()
        self.moves_since: dict[str, int] = {}

    def see(self, actions: tuple[Action, ...]) -> None:
        self.check_reasons(actions)
        super().see(actions)
        # Check after the whole event: an order may be replaced while the event is handled.
        self.check_moves_at_once()

    def take(self, action: Action) -> None:
        match action:
            case StartQuery():
                self.check_bounds(action)
            case Rescale() | PrepareMove():
                self.check_bounds(action)
                self.check_rescale(action)
        super().take(action)

    # Orders

    def check_reasons(self, actions: tuple[Action, ...]) -> None:
        reported: set[str | None] = set()
        settled: set[str | None] = set()
        slots = self.scene.scheduler.slots.total
        for action in actions:
            match action:
                case Report(decision=decision):
                    assert decision.message
                    if decision.kind in ("rescale_state", "rescale_in_place"):
                        reported.add(decision.query)
                    if decision.reason in ("rescale_called_off", "rescaled_again"):
                        # No state is moved, or an earlier decision, made while there were slots, is repeated.
                        reported.add(decision.query)
                        settled.add(decision.query)
                    if decision.reason in ("rescale_prepared", "preparation_failed"):
                        reported.add(decision.query)
                case PrepareMove(query=query, partitions=count) if count == self.partitions.get(query):
                    pass  # to copy nothing
                case Rescale() | PrepareMove():
                    assert action.query in reported, "a rescale without a reason"
                    assert action.query in settled or slots > 0, "rescaled without a slot to do it on"
                case HoldQuery():
                    assert action.message

    def check_moves_at_once(self) -> None:
        """Count the queries whose state an open order may move; each of them counts for ten minutes."""
        stopped = self.stopped | {order.query for order in self.open if isinstance(order, CancelQuery)}
        moving = {order.query for order in self.open if self.moves_state(order)} - stopped
        now = self.scene.now
        self.moves_since = {query: self.moves_since.get(query, now) for query in moving}
        recent = [query for query, since in self.moves_since.items() if now < since + PATIENCE_MS]
        assert len(recent) <= self.scene.settings.max_concurrent_rescales, "too many move at once"

    def moves_state(self, order: Action) -> TypeGuard[StartQuery | Rescale | PrepareMove]:
        if not isinstance(order, StartQuery | Rescale | PrepareMove) or order.query not in self.phase:
            return False
        if isinstance(order, PrepareMove) and (
            order.id in self.given_up or order != self.ordered_copies(order.query)[-1]
        ):
            return False
        if isinstance(order, StartQuery) and self.phase[order.query] != "held":
            return False  # a running query ignores a start, and a restart after a failure moves no state
        facts = self.facts[order.query]
        in_force = self.partitions.get(order.query, facts.checkpoint_partitions)
        return facts.stateful and order.partitions is not None and in_force not in (None, order.partitions)

    def check_rescale(self, order: Rescale | PrepareMove) -> None:
        facts = self.facts[order.query]
        assert order.cause in self.changes or not self.given_to(order.query).hands_off
        assert self.phase[order.query] == "running", "rescaled while it stands still"
        if facts.stateful:
            assert (facts.provider, facts.checkpoint_format) == ("rocksdb", 2)
            in_force = self.partitions[order.query]
            assert order.query not in self.fresh or order.partitions == in_force, "moved without a batch"

    def is_for_ever(self, facts: QueryFacts, given: CoreSettings) -> bool:
        """Return whether a new checkpoint keeps its first count, and so leaves room for more slots."""
        has_format = facts.provider == "rocksdb" and facts.checkpoint_format == 2
        return facts.stateful and not has_format and not makes_rescalable(facts, given)

    def check_bounds(self, action: StartQuery | Rescale | PrepareMove) -> None:
        given = self.given_to(action.query)
        # Actions that were pending before the bounds changed come first and follow the old bounds.
        held = given.mode == "adaptive" and not given.hands_off
        if held and isinstance(action, StartQuery) and action.cause not in self.changes:
            lower = self.needed(self.first_of_running(action.query))
            total = self.scene.scheduler.slots.total
            assert self.excused or total >= lower, "started below the lower bounds"
            self.excused |= self.needed_by("running", also=action.query) > total
        if action.partitions is not None:
            facts = self.facts[action.query]
            # After a failure the query restarts with its previous count.
            if action.partitions == self.partitions.get(action.query):
                return
            assert action.cause in self.changes or 1 <= action.partitions <= given.max_parallelism
            # A query whose slots follow its load has spare partitions; a permanent count leaves room for
            # growth.
            times = 2 * GROWTH if given.measures else GROWTH if self.is_for_ever(facts, given) else 1
            assert action.partitions <= times * self.scene.scheduler.slots.total
            adaptive = given.mode == "adaptive"
            if action.cause in self.changes:
                return
            if adaptive and action.query in self.bounds and facts.query in self.scene.scheduler.queries:
                taken_back = action.query in self.taken_back
                upper = given.max_parallelism if taken_back else self.bounds[action.query][1]
                assert action.partitions <= upper
            elif facts.explicit_partitions is not None:
                assert given.explicit_parallelism != "fixed"
                if given.explicit_parallelism == "upperBound":
                    assert action.partitions <= facts.explicit_partitions

    def needed_by(self, *standings: str, also: str) -> int:
        """Add up the lower bounds of queries with the given standings, and of one more."""
        machines = self.scene.scheduler._machines
        return self.needed([q for q, m in machines.items() if m.record.standing in standings or q == also])

    def first_of_running(self, query: str) -> list[str]:
        """Return the starting query and those whose lower bounds take precedence over it.

        A query that restarts after a failure takes precedence over running queries with a lower priority, and
        so do the queries that share its slots.
        """
        machines = self.scene.scheduler._machines
        again = [
            machine.record.requirements.priority
            for other, machine in machines.items()
            if machine.record.standing == "recovering"
            or (other == query and self.phase.get(query) == "failed")
        ]

        def comes_first(other: str) -> bool:
            record = machines[other].record
            return record.standing == "running" and record.requirements.priority >= max(again, default=-99)

        return [other for other in machines if other == query or comes_first(other)]

    def needed(self, queries: list[str]) -> int:
        """Add up the lower bounds of queries; within a group the largest one counts."""
        groups: dict[str, int] = {}
        for query in queries:
            for vertex in self.scene.scheduler._machines[query].record.requirements.vertices:
                groups[vertex.group] = max(groups.get(vertex.group, 0), vertex.bounds.lower)
        return sum(groups.values())

    def nobody_waits_in_vain(self) -> None:
        for query, phase in self.phase.items():
            record = self.scene.scheduler._machines[query].record
            short = self.scene.scheduler.slots.total < self.needed_by("running", also=query)
            waits = short and record.state.name == "WaitingForResources"
            assert waits or (phase == "running" and record.state.name == "Executing"), record.state
            # A savepoint without an outcome blocks nothing.
            orders = {order.kind for order in record.orders.pending.values()} - {"savepoint"}
            in_force = record.target is None and not orders
            assert waits or in_force, record

    # Invariants

    @invariant()
    def all_is_sound(self) -> None:
        self.scene.scheduler.validate()

    @invariant()
    def no_move_is_forgotten(self) -> None:
        """A query whose state may be moving is not in the state Executing."""
        for query in () if self.forgets else self.phase:
            machine = self.scene.scheduler._machines[query]
            state = machine.record.state
            if state.name == "Executing" and machine.record.facts.stateful:
                assert not self.rescales(query)
                assert state.preparing or not any(map(self.moves_state, self.ordered_copies(query)))

    @invariant()
    def nobody_waits_for_what_is_there(self) -> None:
        for query in self.phase:
            given = self.given_to(query)
            if given.submission_stabilization_ms > 0 and not given.hands_off:
                continue
            machine = self.scene.scheduler._machines[query]
            needed = self.needed_by("running", "recovering", also=query)
            due = machine.record.state.due
            if due is not None and due <= self.scene.now:
                continue  # a wait that was shortened ends with its timer, which fires next
            if given.hands_off or self.scene.scheduler.slots.total >= needed:
                assert machine.record.state.name != "WaitingForResources"

    @invariant()
    def what_is_declared_adds_up(self) -> None:
        """The lower bounds of running queries fit into the slots, unless slots have been lost."""
        total = self.scene.scheduler.slots.total
        all_given = [self.scene.settings, *map(self.given_to, self.scene.scheduler._machines)]
        if self.needed_by("running", also="") <= total:
            self.excused = False
        else:
            assert self.excused or any(one.hands_off or one.mode == "reactive" for one in all_given)

    @invariant()
    def shares_add_up_to_no_more_than_there_is(self) -> None:
        used: dict[str, int] = {}
        total = self.scene.scheduler.slots.total
        for machine in self.scene.scheduler._machines.values():
            record = machine.record
            if record.standing is not None and record.shares.now.suffices:
                assert record.requirements.lower <= record.shares.now.slots <= total
                vertex = record.requirements.shuffle
                most = vertex.parallelism(record.shares.now.slots)
                used[vertex.group] = max(used.get(vertex.group, 0), most)
        assert sum(used.values()) <= total

    def teardown(self) -> None:
        self.scene.check()
        seen(self.scene)
