"""A policy with rules that fit on a page, for tests of the code around the real one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_elastic.core.actions import Action, CancelTimer, Configure, Rescale, SetTimer
from spark_elastic.core.events import (
    CancelRequested,
    Event,
    ExecutorAdded,
    ExecutorRemoved,
    Snapshot,
    TimerFired,
)
from spark_elastic.core.saved import NotRestorable
from spark_elastic.core.settings import CoreSettings

START = 1_700_000_000_000


class CountingPolicy:
    """Gives every query as many partitions as there are executors, one second after the last change."""

    def __init__(self, settings: CoreSettings) -> None:
        self.settings = settings
        self.executors = 0
        self._actions = 0

    def handle(self, event: Event) -> tuple[Action, ...]:
        match event:
            case Snapshot():
                limits = self.settings
                return (
                    Configure(
                        id=self._next(), cause=event.id, warm_up_ms=0,
                        start_wait_ms=limits.start_wait_ms, decision_wait_ms=0, restarts=False,
                        batch_stages=False,
                        mode="reactive",
                    ),
                )  # fmt: skip
            case ExecutorAdded():
                self.executors += 1
                return (SetTimer(id=self._next(), cause=event.id, timer="settle", at=event.at + 1_000),)
            case ExecutorRemoved():
                self.executors -= 1
                return (CancelTimer(id=self._next(), cause=event.id, timer="settle"),)
            case TimerFired():
                return (
                    Rescale(id=self._next(), cause=event.id, query="q", run="r", partitions=self.executors),
                )
            case CancelRequested():
                raise RuntimeError("this policy ends no queries")
        return ()

    def save(self) -> dict[str, Any]:
        start_wait_ms = self.settings.start_wait_ms
        return {"executors": self.executors, "actions": self._actions, "start_wait_ms": start_wait_ms}

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> CountingPolicy:
        if "executors" not in state:
            raise NotRestorable("nobody has counted")
        policy = cls(CoreSettings(start_wait_ms=state["start_wait_ms"]))
        policy.executors, policy._actions = state["executors"], state["actions"]
        return policy

    def _next(self) -> str:
        self._actions += 1
        return f"a{self._actions}"


def snapshot(conf: dict[str, str] | None = None, at: int = START, id: str = "s1") -> Snapshot:
    """Describe an empty cluster."""
    return Snapshot(
        id=id, at=at, application="app-1", application_name="demo", spark_version="4.2.0", conf=conf or {}
    )


def added(number: int, at: int) -> ExecutorAdded:
    """Describe the start of executor `number`, with event id ``s<number + 1>``."""
    return ExecutorAdded(id=f"s{number + 1}", at=at, executor=str(number), host="h", cores=1)
