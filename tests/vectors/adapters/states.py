"""One state and one event: the resulting state of a query, and the fate of pending orders."""

from __future__ import annotations

import re

from attrs import frozen

from spark_elastic.core import events as ev
from spark_elastic.core.actions import CancelQuery, FailQuery, Rescale, StartQuery, TakeSavepoint
from spark_elastic.core.failures.strategy import FixedDelay, NoRestart
from spark_elastic.core.query.machine import STATES
from spark_elastic.core.query.step import Step
from spark_elastic.core.rescale.concurrency import MoveQueue
from spark_elastic.core.rescale.history import History
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.transitions import TRANSITIONS, IllegalTransitionError
from spark_elastic.core.turn import Counters, Turn
from tests.unit.core.builder import Scene
from tests.unit.core.shim import carry_out, settle
from tests.vectors.adapters.fields import Fields

_STATES = re.compile(rf"\b(?:{'|'.join(TRANSITIONS)})\b")
_WITHOUT_RUN = ("StateWithoutExecutionGraph", "WaitingForResources", "without graph", "not Executing")
_ORDERS = StartQuery | Rescale | TakeSavepoint | FailQuery | CancelQuery
_WAIT_MS = 5_000
_ENDS = {"canceled": "CANCELED", "query_failed": "FAILED"}


@frozen(kw_only=True)
class Outcome:
    """The outcome once the shim has nothing left to do.

    `visited` are the states that were entered; `at_once` says that one was entered, or something ordered,
    before the shim did anything. `refused` says that a savepoint was refused, `illegal` that there is no such
    transition. `ended` is how the query ended, `saved` that it ended with its savepoint.
    """

    visited: tuple[str, ...] = ()
    at_once: bool = False
    refused: bool = False
    illegal: bool = False
    ended: str | None = None
    saved: bool = False


class BrokenInvariantError(Exception):
    """The state machine itself finds a broken invariant."""


def state_machine(given: Fields) -> Fields:
    try:
        return {"result": _Case(given["state"], given["event"], given["condition"] or "").outcome()}
    except (IllegalTransitionError, BrokenInvariantError):
        return {"result": Outcome(illegal=True)}


def agrees(words: str, found: Outcome) -> bool:
    """Return whether the outcome matches a vector's prose."""
    match words:
        case "IllegalStateException":
            return found.illegal
        case "CheckpointException":
            return found.refused and not found.visited
        case "ignored" | "returns false":
            return not found.illegal and not found.at_once
    wanted, way = _STATES.findall(words), iter(found.visited)
    ended = re.search(r"Finished\(([A-Z]+)\)", words)
    return (
        bool(wanted)
        and all(state in way for state in wanted)
        and (ended is None or found.ended == ended[1])
        and ("operation" not in words or found.saved == ("returns the path" in words))
    )


class _Case:
    """A query that is brought to `state`, where `event` happens."""

    def __init__(self, state: str, event: str, condition: str) -> None:
        self._state, self._event, self._condition = state, event, condition
        retried = "restart allowed" in condition or "no target" in condition
        self.scene = Scene(
            CoreSettings(
                rescale_policy="always",
                cooldown_ms=0,
                executing_stabilization_ms=0,
                resource_wait_ms=_WAIT_MS,
                restart=FixedDelay(attempts=1, delay_ms=0) if retried else NoRestart(),
            )
        )

    def outcome(self) -> Outcome:
        visited: list[str] = []
        note = History.entered

        def entered(history: History, state: str, at: int) -> None:
            visited.append(state)
            note(history, state, at)

        History.entered = entered  # type: ignore[method-assign,assignment]
        try:
            self._reach()
            if self._event != "enter":
                visited.clear()
            before = 0 if self._event == "enter" else len(self.scene.actions)
            for event in re.split(r",? then | and ", self._event):
                self._happens(event)
            orders = [type(a).__name__ for a in self.scene.actions[before:] if isinstance(a, _ORDERS)]
            at_once = bool(visited or orders)
            settle(self.scene, wait_ms=0)
        finally:
            History.entered = note  # type: ignore[method-assign]
        view = self.scene.query()
        reason = view.last_decision.reason if view.last_decision is not None else ""
        return Outcome(
            visited=tuple(visited),
            at_once=at_once,
            refused=reason == "savepoint_refused",
            ended=_ENDS.get(reason),
            saved=reason == "stopped_with_savepoint",
        )

    def _reach(self) -> None:
        scene = self.scene
        if self._state in _WITHOUT_RUN:
            scene.start(*([2] if "desired resources" in self._condition else []))
            scene.submit()
            return
        scene.start(2)
        scene.submit()
        if self._state == "CreatingExecutionGraph":
            return
        scene.started(2)
        match self._state:
            case "Executing" | "any":
                pass
            case "Restarting" if "no target" in self._condition:
                self._happens("task_failure")
            case "Restarting":
                scene.executor("1", 1)
                scene.batches(300, partitions=2)
            case "Canceling":
                self._happens("cancel")
            case "Failing":
                self._happens("global_failure")
            case "Finished":
                scene.terminated()
            case "StopWithSavepoint":
                self._happens("stop_with_savepoint")
            case _:
                raise KeyError(self._state)

    def _happens(self, event: str) -> None:
        scene = self.scene
        match event:
            case "enter":
                scene.scheduler.validate()
                if "not RUNNING" in self._condition:
                    self._enter_without_a_run()
            case "transition into the same state class":
                turn = Turn(
                    settings=scene.settings,
                    cause="s0",
                    now=scene.now,
                    slots=2,
                    moves=MoveQueue(limit=1),
                    name_of=lambda _: None,
                    counters=Counters(),
                )
                Step(scene.scheduler._machines["counts"].record, turn, STATES).execute()
            case "cancel":
                scene.send(ev.CancelRequested, query="counts", by="the vector")
            case "suspend" | "graph_globally_terminal":
                scene.terminated()
            case "resource_wait_timeout":
                scene.advance(_WAIT_MS)
            case "slot_assignment_ok" | "graph FAILED" | "graph CANCELED" | "graph FINISHED":
                pass  # ordered already, and the shim carries it out
            case "stop_with_savepoint" | "trigger_savepoint":
                stop = event.startswith("stop")
                scene.send(ev.SavepointRequested, query="counts", by="the vector", target="/s", stop=stop)
            case "update_task_state":
                scene.batch(300, 2)
            case "savepoint ok" | "savepoint fails":
                self._copied(well=event.endswith("ok"))
            case "task failure before savepoint completes":
                self._happens("task_failure")
                self._happens("savepoint ok")
            case "graph_creation_failed":
                order = scene.last_order("StartQuery")
                assert order is not None
                scene.fail(order)
                self._happens("task_failure")
            case _ if "fail" in event:
                run = "r2" if "unknown" in self._condition else "r1"
                failure = ev.Failure(error="no", causes=("java.io.IOException",), offsets="[7]")
                scene.send(ev.QueryFailed, query="counts", run=run, failure=failure)
            case _:
                raise KeyError(event)

    def _enter_without_a_run(self) -> None:
        record = self.scene.scheduler._machines["counts"].record
        record.run_state = "held"
        try:
            record.validate()
        except AssertionError as error:
            raise BrokenInvariantError from error

    def _copied(self, *, well: bool) -> None:
        order = self.scene.last_order("TakeSavepoint")
        assert order is not None
        if well:
            carry_out(self.scene, order)
        else:
            self.scene.fail(order)
