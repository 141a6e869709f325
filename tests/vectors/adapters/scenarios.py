"""Whole lives of a query: bounds and slots go in, the resulting parallelism comes out."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from spark_elastic.core import events as ev
from spark_elastic.core.bounds.requirements import Bounds, Vertex, slot_groups
from spark_elastic.core.bounds.shares import allocate
from spark_elastic.core.failures.judge import judge
from spark_elastic.core.failures.poison import PoisonWatch
from spark_elastic.core.failures.strategy import FixedDelay, new_strategy
from spark_elastic.core.settings import CoreSettings
from tests.unit.core.builder import STATEFUL, Scene
from tests.unit.core.shim import running, settle
from tests.vectors.adapters.fields import Fields

_UNBOUNDED = 32_768
# Longer than a scene lasts: no slot is given back unless a vector sets the timeout.
_NEVER_MS = 3_600_000


def rescale_scenarios(given: Fields) -> Fields:
    if "before" in given:
        return _groups(given)
    if "strategy_backoff_ms" in given or "unrecoverable" in given:
        return _failure(given)
    return _Life(given).fields()


class _Life:
    """A query of one vertex on executors with one slot each (or as many as a TaskManager has)."""

    def __init__(self, given: Fields) -> None:
        self._given = given
        self._per_executor = given.get("slots_per_tm", 1)
        bounded = any(key in given for key in ("upper", "upper_before", "steps"))
        self.scene = Scene(
            CoreSettings(
                mode="adaptive" if bounded else "reactive",
                rescale_policy="always",
                resource_wait_ms=given.get("submission.resource-wait-timeout_ms", -1),
                slot_idle_ms=given.get("slot.idle.timeout_ms", _NEVER_MS),
                max_parallelism=given.get("max_parallelism", _UNBOUNDED),
            )
        )
        self._slots = 0
        self._added = 0
        self._found: list[dict[str, Any]] = []
        self.scene.start()

    def fields(self) -> Fields:
        for number, step in enumerate(self._steps()):
            self._step(step, first=number == 0)
            self._found.append(self._look())
        last = self._found[-1]
        counts = [found["running"] for found in self._found]
        return {
            **last,
            "running": counts[-1] if isinstance(self._given.get("taskmanagers"), int) else counts,
            "running_parallelism": counts,
            "running_after": counts[-1],
            "freed_slots": self._slots - self.scene.scheduler.slots.total,
            "numRescales": [found["rescaled"] for found in self._found],
            "numRestarts": [found["restarted"] for found in self._found],
        }

    def _steps(self) -> list[dict[str, int]]:
        """Yield the slots and bounds of each step."""
        given = self._given
        if "steps" in given:
            return list(given["steps"])
        if "upper_before" in given:
            uppers = (given["upper_before"], given["upper_after"])
            return [{"slots": given["slots"], "upper": upper} for upper in uppers]
        sizes = given.get("slots", given.get("taskmanagers"))
        bounds = {key: given[key] for key in ("lower", "upper") if key in given}
        listed = sizes if isinstance(sizes, list) else [sizes]
        return [{"slots": size * self._per_executor, **bounds} for size in listed]

    def _step(self, step: dict[str, int], *, first: bool) -> None:
        if "upper" in step:
            bounds = {"shuffle": (step.get("lower", 1), step["upper"])}
            self.scene.send(ev.RequirementsRequested, query="counts", bounds=bounds, by="the vector")
        while self._slots < step["slots"]:
            self.scene.executor(str(self._added), self._per_executor)
            self._added += 1
            self._slots += self._per_executor
        while self._slots > step["slots"]:
            self._added -= 1
            self.scene.lose(str(self._added))
            self._slots -= self._per_executor
        if first:
            self.scene.submit(evolve(STATEFUL, trigger_ms=0))
        settle(self.scene)

    def _look(self) -> dict[str, Any]:
        view = self.scene.query()
        return {
            "running": running(self.scene),
            "restarted": view.restarted,
            "rescaled": view.rescaled,
            "job_status": "FAILED" if view.history[0].reason == "job_failed" else "RUNNING",
            "tasks_submitted": 0 if running(self.scene) is None else running(self.scene),
        }


def _groups(given: Fields) -> Fields:
    def tasks(key: str) -> int:
        vertices = [
            Vertex(id=v["id"], group=v["group"], bounds=Bounds(lower=v["lower"], upper=v["upper"]))
            for v in given[key]
        ]
        slots = allocate(slot_groups(vertices), given["slots"])
        assert slots is not None
        return sum(vertex.parallelism(slots[vertex.group]) for vertex in vertices)

    # In this vector each group has one vertex, so a task is a slot.
    after = tasks("after")
    return {"tasks_before": tasks("before"), "tasks_after": after, "free_slots_after": given["slots"] - after}


def _failure(given: Fields) -> Fields:
    backoff_ms = given.get("strategy_backoff_ms", 0)
    causes = ("org.apache.spark.sql.AnalysisException",) if given.get("unrecoverable") else ()
    judgement = judge(
        ev.Failure(error="no", causes=causes),
        at=0,
        strategy=new_strategy(FixedDelay(attempts=1, delay_ms=backoff_ms), 0),
        poison=PoisonWatch(),
        store="user",
    )
    return {"can_restart": judgement.backoff_ms is not None, "backoff_ms": judgement.backoff_ms}
