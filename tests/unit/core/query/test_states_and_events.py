"""Tests every state against every event: a new state or event fails here until its outcome is listed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from spark_elastic.core import events as ev
from spark_elastic.core.events import BatchStage, BatchStages, ExecutorsUsed, NewExecutor, StageCompleted
from spark_elastic.core.failures.strategy import FixedDelay
from spark_elastic.core.policies.policy import PolicyAnswered
from spark_elastic.core.query.executing import Executing
from spark_elastic.core.rescale.history import History
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.transitions import TRANSITIONS, IllegalTransitionError
from spark_elastic.wire import EVENT_TYPES
from tests.unit.core.builder import STATEFUL, Scene, reasons, snapshot
from tests.unit.core.query.reached import creating, executing, restarting, waiting

WAITING, CREATING, EXECUTING, STOPPING, RESTARTING, FAILING, CANCELING, FINISHED = list(TRANSITIONS)[1:]


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene(CoreSettings(restart=FixedDelay(attempts=1, delay_ms=1_000)))
    yield scene
    scene.check()


def failing(scene: Scene) -> None:
    executing(scene)
    fails_for_good(scene)


def canceling(scene: Scene) -> None:
    executing(scene)
    is_canceled(scene)


def finished(scene: Scene) -> None:
    executing(scene)
    scene.terminated()


def stopping_with_savepoint(scene: Scene) -> None:
    executing(scene)
    asks_for_savepoint(scene)


def asks_for_savepoint(scene: Scene) -> None:
    scene.send(ev.SavepointRequested, **fields(ev.SavepointRequested, scene))


def is_saved(scene: Scene) -> None:
    order = scene.last_order("TakeSavepoint")
    assert order is not None
    scene.send(ev.SavepointTaken, **{**fields(ev.SavepointTaken, scene), "action": order.id})


def is_not_saved(scene: Scene) -> None:
    order = scene.last_order("TakeSavepoint")
    assert order is not None
    scene.fail(order)


def fails(scene: Scene) -> None:
    scene.run_fails()


def fails_for_good(scene: Scene) -> None:
    scene.run_fails(causes=("org.apache.spark.sql.AnalysisException",))


def is_canceled(scene: Scene) -> None:
    scene.send(ev.CancelRequested, query="counts", by="somebody")


REACH: dict[str, Callable[[Scene], None]] = {
    WAITING: waiting,
    CREATING: creating,
    EXECUTING: executing,
    STOPPING: stopping_with_savepoint,
    RESTARTING: restarting,
    FAILING: failing,
    CANCELING: canceling,
    FINISHED: finished,
}

QUERY = {"query": "counts", "run": "r1"}


def fields(kind: type[ev.Event], scene: Scene) -> dict[str, Any]:
    """Fill in the fields of an event so that it fits the query's current state."""
    newest = next(
        (
            action
            for action in reversed(scene.actions)
            if type(action).__name__ in ("StartQuery", "Rescale", "TakeSavepoint")
        ),
        None,
    )
    order = "a0" if newest is None else newest.id
    filled: dict[type[ev.Event], dict[str, Any]] = {
        ev.Snapshot: snapshot(),
        ev.ExecutorAdded: {"executor": "7", "host": "h", "cores": 1},
        ev.ExecutorRemoved: {"executor": "0"},
        ev.ExecutorExcluded: {"executor": "0"},
        ev.ExecutorUnexcluded: {"executor": "0"},
        ev.ExecutorDecommissioning: {"executor": "0"},
        ev.ExecutorUsage: {"executor": "0", "cached_bytes": 1, "shuffle_bytes": 1},
        ev.PolicyFileChanged: {"path": "policy.yaml"},
        ev.PolicyFileRefused: {"path": "policy.yaml", "errors": ("line 1 is no YAML",)},
        ev.QuerySubmitted: {"facts": STATEFUL, "run": "r1"},
        ev.QueryStarted: {**QUERY, "partitions": 2},
        ev.QueryProgress: {**QUERY, "batch": 1, "started": 1, "duration_ms": 300, "partitions": 2},
        ev.BatchPlanned: {**QUERY, "batch": 2, "input_rows": 10},
        ev.QueryIdle: QUERY,
        ev.QueryFailed: {**QUERY, "failure": ev.Failure(error="disk full")},
        ev.QueryTerminated: QUERY,
        ev.SavepointTaken: {**QUERY, "action": "a0", "path": "/s/savepoint-7", "batch": 7, "bytes": 1},
        ev.SavepointRequested: {"query": "counts", "by": "somebody", "target": "/s", "stop": True},
        ev.CancelRequested: {"query": "counts", "by": "somebody"},
        ev.RequirementsRequested: {"query": "counts", "bounds": {"shuffle": (1, 4)}, "by": "somebody"},
        ev.RequirementsDropped: {"query": "counts", "by": "somebody"},
        ExecutorsUsed: {"query": "counts", "executors": (NewExecutor(executor="0", joined=0, launched=1),)},
        StageCompleted: {"query": "counts", "batch": 1, "tasks": 2, "duration_ms": 40},
        BatchStages: {"stages": (BatchStage(stage=1, tasks=200),)},
        ev.ActionDone: {"action": order, "query": "counts", "took_ms": 1},
        ev.ActionFailed: {"action": order, "query": "counts", "error": "no"},
        ev.TimerFired: {"timer": "t0", "query": "counts"},
        PolicyAnswered: {"policy": "a:B", "asked": "a0", "error": "no"},
    }
    return filled[kind]


OUTCOMES: dict[type[ev.Event], str] = {
    # in:                        Waiting, Creating (graph), Executing, StopWithSavepoint, Restarting,
    #                            fAiling, caNceling, Finished
    ev.Snapshot:                "F F F F F F F F",
    ev.ExecutorAdded:           "C C E S R A N F",
    ev.ExecutorRemoved:         "W C E S R A N F",
    ev.ExecutorExcluded:        "W C E S R A N F",
    ev.ExecutorUnexcluded:      "W C E S R A N F",
    ev.ExecutorDecommissioning: "W C E S R A N F",
    ev.ExecutorUsage:           "W C E S R A N F",
    ev.PolicyFileChanged:       "W C E S R A N F",
    ev.PolicyFileRefused:       "W C E S R A N F",
    ev.QuerySubmitted:          "W C E S R A N C",
    ev.QueryStarted:            "E E E E E N N F",
    ev.QueryProgress:           "W C E S R A N F",
    ev.BatchPlanned:            "W C E S R A N F",
    ev.QueryIdle:               "W C E S R A N F",
    ev.QueryFailed:             "R R R S R A N F",
    ev.QueryTerminated:         "F F F F F F F F",
    ev.SavepointTaken:          "W C E S R A N F",
    ev.SavepointRequested:      "W C S S R A N F",
    ev.CancelRequested:         "N N N N N N N F",
    ev.RequirementsRequested:   "W C E S R A N F",
    ev.RequirementsDropped:     "W C E S R A N F",
    StageCompleted:          "W C E S R A N F",
    ExecutorsUsed:              "W C E S R A N F",
    BatchStages:                "W C E S R A N F",
    ev.ActionDone:              "W C E S E A N F",
    ev.ActionFailed:            "W C E E E A N F",
    ev.TimerFired:              "W C E S R A N F",
    PolicyAnswered:             "W C E S R A N F",
}  # fmt: skip
LETTERS = dict(zip("WCESRANF", REACH, strict=True))


@pytest.mark.parametrize("kind", EVENT_TYPES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("state", REACH)
def test_what_an_event_does_in_a_state(scene: Scene, state: str, kind: type[ev.Event]) -> None:
    REACH[state](scene)
    assert scene.query().state == state
    actions = scene.send(kind, **fields(kind, scene))
    assert scene.query().state == LETTERS[OUTCOMES[kind].split()[list(REACH).index(state)]]
    assert "unexpected" not in reasons(actions)


def test_what_a_state_does_not_expect_is_said_once(monkeypatch: pytest.MonkeyPatch, scene: Scene) -> None:
    reactions = {kind: does for kind, does in Executing.reactions.items() if kind is not ev.QuerySubmitted}
    monkeypatch.setattr(Executing, "reactions", reactions)
    executing(scene)
    again = fields(ev.QuerySubmitted, scene)
    assert reasons(scene.send(ev.QuerySubmitted, **again)) == ["unexpected"]
    assert scene.send(ev.QuerySubmitted, **again) == ()


def test_all_states_are_in_the_table_and_can_be_reached() -> None:
    assert {goal for goals in TRANSITIONS.values() for goal in goals} == TRANSITIONS.keys() - {"Created"}
    assert REACH.keys() == TRANSITIONS.keys() - {"Created"}


def test_every_edge_says_when_it_happens() -> None:
    for goals in TRANSITIONS.values():
        for when in goals.values():
            assert when.endswith(".")


def test_only_the_end_is_final() -> None:
    assert [state for state, goals in TRANSITIONS.items() if not goals] == ["Finished"]
    assert all(
        "Finished" in goals for state, goals in TRANSITIONS.items() if state not in ("Created", "Finished")
    )


EDGES = [(start, goal) for start, goals in TRANSITIONS.items() for goal in goals]
Step = Callable[[Scene], Any]


def adopted(scene: Scene) -> None:
    info = ev.QueryInfo(facts=STATEFUL, run="r1", run_state="running", partitions=2)
    scene.start(2, queries=[info])


def ends(scene: Scene) -> None:
    scene.terminated()


def is_rescaled(scene: Scene) -> None:
    scene.rescaled()


def runs_unasked(scene: Scene) -> None:
    scene.send(ev.QueryStarted, **QUERY, partitions=2)


def found_failed(error: str) -> Step:
    failure = ev.Failure(error="disk full", causes=(error,))

    def found(scene: Scene) -> None:
        info = ev.QueryInfo(facts=STATEFUL, run="r1", run_state="failed", partitions=2, failure=failure)
        scene.start(2, queries=[info])

    return found


def waits_in_vain(scene: Scene) -> None:
    scene.scheduler.settings = CoreSettings(mode="adaptive", resource_wait_ms=1_000)
    scene.settings = scene.scheduler.settings
    scene.start()
    scene.submit()
    scene.advance(1_000)


def creating_in_bounds(scene: Scene) -> None:
    scene.scheduler.settings = CoreSettings(mode="adaptive")
    scene.settings = scene.scheduler.settings
    creating(scene)


def start_is_lost_with_the_slots(scene: Scene) -> None:
    scene.start(queries=[ev.QueryInfo(facts=STATEFUL, run="r1", run_state="held")])


def backoff_ends(scene: Scene) -> None:
    scene.advance(1_000)


STORIES: dict[tuple[str, str], tuple[Step, ...]] = {
    ("Created", WAITING): (waiting,),
    ("Created", EXECUTING): (adopted,),
    ("Created", RESTARTING): (found_failed("java.io.IOException"),),
    ("Created", FAILING): (found_failed("org.apache.spark.sql.AnalysisException"),),
    (WAITING, CREATING): (creating,),
    (WAITING, RESTARTING): (waiting, fails),
    (WAITING, FAILING): (waiting, fails_for_good),
    (WAITING, CANCELING): (waiting, is_canceled),
    (WAITING, EXECUTING): (waiting, runs_unasked),
    (WAITING, FINISHED): (waiting, ends),
    (CREATING, EXECUTING): (executing,),
    (CREATING, WAITING): (creating_in_bounds, start_is_lost_with_the_slots),
    (CREATING, RESTARTING): (creating, fails),
    (CREATING, FAILING): (waits_in_vain,),
    (CREATING, CANCELING): (creating, is_canceled),
    (CREATING, FINISHED): (creating, ends),
    (EXECUTING, RESTARTING): (restarting,),
    (EXECUTING, STOPPING): (stopping_with_savepoint,),
    (STOPPING, EXECUTING): (stopping_with_savepoint, is_not_saved),
    (STOPPING, RESTARTING): (stopping_with_savepoint, fails, is_saved),
    (STOPPING, FAILING): (stopping_with_savepoint, fails_for_good, is_not_saved),
    (STOPPING, CANCELING): (stopping_with_savepoint, is_canceled),
    (STOPPING, FINISHED): (stopping_with_savepoint, is_saved, ends),
    (EXECUTING, FAILING): (failing,),
    (EXECUTING, CANCELING): (canceling,),
    (EXECUTING, FINISHED): (finished,),
    (RESTARTING, WAITING): (executing, fails, backoff_ends),
    (RESTARTING, EXECUTING): (restarting, is_rescaled),
    (RESTARTING, FAILING): (restarting, fails_for_good),
    (RESTARTING, CANCELING): (restarting, is_canceled),
    (RESTARTING, FINISHED): (restarting, ends),
    (FAILING, CANCELING): (failing, is_canceled),
    (FAILING, FINISHED): (failing, ends),
    (CANCELING, FINISHED): (canceling, ends),
}


@pytest.mark.parametrize("edge", EDGES, ids=" to ".join)
def test_every_edge_of_the_table_is_taken_in_the_world(
    scene: Scene, edge: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[str] = ["Created"]
    note = History.entered

    def entered(self: History, state: str, at: int) -> None:
        taken.append(state)
        note(self, state, at)

    monkeypatch.setattr(History, "entered", entered)
    for step in STORIES[edge]:
        step(scene)
    assert edge in list(pairwise(taken))


def test_what_is_not_in_the_table_is_refused(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TRANSITIONS, EXECUTING, {})
    executing(scene)
    with pytest.raises(IllegalTransitionError, match="Executing to Finished is not in the table"):
        scene.terminated()


def test_an_event_for_an_unknown_query_changes_nothing(scene: Scene) -> None:
    scene.start(2)
    assert scene.send(ev.QueryProgress, **{**fields(ev.QueryProgress, scene), "query": "?"}) == ()
    assert scene.send(ev.ActionDone, action="a99", took_ms=1) == ()


def test_an_event_outside_the_contract_is_refused(scene: Scene) -> None:
    with pytest.raises(TypeError, match="Event is not an event of the contract"):
        scene.scheduler.handle(ev.Event(id="s1", at=1))


def test_time_never_runs_backwards(scene: Scene) -> None:
    executing(scene)
    scene.now -= 5_000
    scene.executor("1", cores=2)
    decision = scene.query().last_decision
    assert decision is not None
    assert decision.at == scene.now + 5_000
