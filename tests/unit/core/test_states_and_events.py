"""Every state meets every event: a new one of either fails here until somebody has decided about it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from spark_elastic.core import events as ev
from spark_elastic.core.history import History
from spark_elastic.core.query.created import Created
from spark_elastic.core.query.creating_execution_graph import CreatingExecutionGraph
from spark_elastic.core.query.executing import Executing
from spark_elastic.core.query.finished import Finished
from spark_elastic.core.query.restarting import Restarting
from spark_elastic.core.query.state import State
from spark_elastic.core.query.transitions import TRANSITIONS, IllegalTransitionError
from spark_elastic.core.query.waiting_for_resources import WaitingForResources
from tests.unit.core.builder import STATEFUL, Scene, reasons, snapshot

STATES: tuple[type[State], ...] = (
    Created,
    WaitingForResources,
    CreatingExecutionGraph,
    Executing,
    Restarting,
    Finished,
)
WAITING, CREATING, EXECUTING, RESTARTING, FINISHED = (state.name for state in STATES[1:])


def waiting(scene: Scene) -> None:
    scene.start()
    scene.submit()


def creating(scene: Scene) -> None:
    scene.start(2)
    scene.submit()


def executing(scene: Scene) -> None:
    scene.start(2)
    scene.running(2)


def restarting(scene: Scene) -> None:
    executing(scene)
    scene.executor("1", cores=2)
    scene.until_stop()


def finished(scene: Scene) -> None:
    executing(scene)
    scene.terminated()


REACH: dict[str, Callable[[Scene], None]] = {
    WAITING: waiting,
    CREATING: creating,
    EXECUTING: executing,
    RESTARTING: restarting,
    FINISHED: finished,
}

QUERY = {"query": "counts", "run": "r1"}


def fields(kind: type[ev.Event], scene: Scene) -> dict[str, Any]:
    """Fill an event in so that it fits the query as it is."""
    newest = next(
        (a for a in reversed(scene.actions) if type(a).__name__ in ("StartQuery", "StopQuery")), None
    )
    order = "a0" if newest is None else newest.id
    filled: dict[type[ev.Event], dict[str, Any]] = {
        ev.Snapshot: snapshot(),
        ev.ExecutorAdded: {"executor": "7", "host": "h", "cores": 1},
        ev.ExecutorRemoved: {"executor": "0"},
        ev.ExecutorExcluded: {"executor": "0"},
        ev.ExecutorUnexcluded: {"executor": "0"},
        ev.ExecutorDecommissioning: {"executor": "0"},
        ev.QuerySubmitted: {"facts": STATEFUL, "run": "r1"},
        ev.QueryStarted: {**QUERY, "partitions": 2},
        ev.QueryProgress: {**QUERY, "batch": 1, "started": 1, "duration_ms": 300, "partitions": 2},
        ev.QueryIdle: QUERY,
        ev.QueryStopped: {**QUERY, "action": order},
        ev.QueryTerminated: QUERY,
        ev.StageCompleted: {"stage": 1, "attempt": 0, "tasks": 2},
        ev.ActionDone: {"action": order, "took_ms": 1},
        ev.ActionFailed: {"action": order, "error": "no"},
        ev.TimerFired: {"timer": "t0"},
    }
    return filled[kind]


OUTCOMES: dict[type[ev.Event], tuple[str, str, str, str, str]] = {
    #                    in:  Waiting    Creating   Executing  Restarting  Finished
    ev.Snapshot:             (FINISHED,  FINISHED,  FINISHED,  FINISHED,   FINISHED),
    ev.ExecutorAdded:        (CREATING,  CREATING,  EXECUTING, RESTARTING, FINISHED),
    ev.ExecutorRemoved:      (WAITING,   CREATING,  EXECUTING, RESTARTING, FINISHED),
    ev.ExecutorExcluded:     (WAITING,   CREATING,  EXECUTING, RESTARTING, FINISHED),
    ev.ExecutorUnexcluded:   (WAITING,   CREATING,  EXECUTING, RESTARTING, FINISHED),
    ev.ExecutorDecommissioning: (WAITING, CREATING, EXECUTING, RESTARTING, FINISHED),
    ev.QuerySubmitted:       (WAITING,   CREATING,  EXECUTING, RESTARTING, CREATING),
    ev.QueryStarted:         (EXECUTING, EXECUTING, EXECUTING, EXECUTING,  FINISHED),
    ev.QueryProgress:        (WAITING,   CREATING,  EXECUTING, RESTARTING, FINISHED),
    ev.QueryIdle:            (WAITING,   CREATING,  EXECUTING, RESTARTING, FINISHED),
    ev.QueryStopped:         (WAITING,   CREATING,  EXECUTING, CREATING,   FINISHED),
    ev.QueryTerminated:      (FINISHED,  FINISHED,  FINISHED,  FINISHED,   FINISHED),
    ev.StageCompleted:       (WAITING,   CREATING,  EXECUTING, RESTARTING, FINISHED),
    ev.ActionDone:           (WAITING,   CREATING,  EXECUTING, RESTARTING, FINISHED),
    ev.ActionFailed:         (WAITING,   CREATING,  EXECUTING, EXECUTING,  FINISHED),
    ev.TimerFired:           (WAITING,   CREATING,  EXECUTING, RESTARTING, FINISHED),
}  # fmt: skip
MAKES_NO_SENSE = {(WAITING, ev.QueryStopped), (CREATING, ev.QueryStopped), (EXECUTING, ev.QueryStopped)}


@pytest.mark.parametrize("kind", ev.EVENT_TYPES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("state", REACH)
def test_what_an_event_does_in_a_state(scene: Scene, state: str, kind: type[ev.Event]) -> None:
    REACH[state](scene)
    assert scene.query().state == state
    actions = scene.send(kind, **fields(kind, scene))
    assert scene.query().state == OUTCOMES[kind][list(REACH).index(state)]
    assert ("unexpected" in reasons(actions)) == ((state, kind) in MAKES_NO_SENSE)


def test_no_state_both_handles_and_ignores_an_event() -> None:
    for state in STATES:
        assert not state.handles & state.ignores.keys()


def test_all_states_are_in_the_table_and_can_be_reached() -> None:
    assert {state.name for state in STATES} == TRANSITIONS.keys()
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
    info = ev.QueryInfo(facts=STATEFUL, run="r1", phase="running", partitions=2)
    scene.start(2, queries=[info])


def ends(scene: Scene) -> None:
    scene.terminated()


def stops(scene: Scene) -> None:
    scene.stopped()


def runs_unasked(scene: Scene) -> None:
    scene.send(ev.QueryStarted, **QUERY, partitions=2)


def loses_all(scene: Scene) -> None:
    scene.lose("0")
    scene.lose("1")


STORIES: dict[tuple[str, str], tuple[Step, ...]] = {
    ("Created", WAITING): (waiting,),
    ("Created", EXECUTING): (adopted,),
    (WAITING, CREATING): (creating,),
    (WAITING, EXECUTING): (waiting, runs_unasked),
    (WAITING, FINISHED): (waiting, ends),
    (CREATING, EXECUTING): (executing,),
    (CREATING, FINISHED): (creating, ends),
    (EXECUTING, RESTARTING): (restarting,),
    (EXECUTING, FINISHED): (finished,),
    (RESTARTING, CREATING): (restarting, stops),
    (RESTARTING, WAITING): (restarting, loses_all, stops),
    (RESTARTING, EXECUTING): (restarting, runs_unasked),
    (RESTARTING, FINISHED): (restarting, ends),
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
