"""The rescale history: events in the life of a job, one line each, and the resulting records."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import evolve

from spark_elastic.core import events as ev
from spark_elastic.core.settings import CoreSettings
from tests.unit.core.builder import STATEFUL, Scene
from tests.unit.core.shim import settle
from tests.vectors.adapters.fields import Fields

# Flink treats lost slots as any failure; here the two are distinguished.
_CAUSES = {"new_resources": "new_resource_available", "lost_resources": "recoverable_failover"}
# Longer than any cooldown: every possible rescale has happened by then.
_LONG_MS = 120_000
_NEVER_MS = 3_600_000


def rescale_history(given: Fields) -> Fields:
    """Play the events of a vector, then return the newest record and all of them."""
    life = _Life(given)
    for line in given["events"]:
        life.tell(line)
    records = life.scene.query().history
    newest = records[0]
    return {
        "size": len(records),
        "newest_cause": _cause(newest.cause),
        "newest_reason": _upper(newest.reason),
        "newest_state": _upper(newest.status),
        "pre_rescale_slots": newest.slots_before,
        "pre_rescale_parallelism": newest.partitions_before,
        "post_rescale_slots": newest.slots_after,
        "post_rescale_parallelism": newest.partitions_after,
        "causes": [_cause(record.cause) for record in records],
        "reasons": [_upper(record.reason) for record in records],
    }


def _cause(cause: str) -> str | None:
    return _upper(_CAUSES.get(cause, cause))


def _upper(word: str | None) -> str | None:
    return None if word is None else word.upper()


class _Life:
    """A query whose own count is its upper bound, on executors with as many slots as a TaskManager."""

    def __init__(self, given: Fields) -> None:
        self._given = given
        self._slots_each = given.get("slots_per_tm", 2)
        cooldown_s = given.get("cooldown_s")
        self.scene = Scene(
            CoreSettings(
                mode="adaptive",
                rescale_policy="always",
                explicit_parallelism="upperBound",
                slot_idle_ms=_NEVER_MS,
                history_size=given.get("history_size", 3),
                **({} if cooldown_s is None else {"cooldown_ms": cooldown_s * 1000}),
            )
        )
        self._executors = int(given.get("taskmanagers", 2))
        self.scene.start(*[self._slots_each] * self._executors)
        self._lines: Mapping[str, Callable[[int], None]] = {
            "submit": lambda _: self._submit(given.get("parallelism", 4)),
            "submit with parallelism": self._submit,
            "add TaskManager": self._add,
            "lose TaskManager": self._lose,
            "update upper to": self._update_upper,
            "cooldown ends": lambda _: self._pass(self.scene.settings.cooldown_ms),
            "finish": lambda _: self._end(None),
            "fail": lambda _: self._end("it has failed"),
            "cancel": self._cancel,
        }

    def tell(self, line: str) -> None:
        words, _, last = line.rpartition(" ")
        name, number = (words, int(last)) if last.isdigit() else (line, 0)
        self._lines[name](number)

    def _submit(self, parallelism: int) -> None:
        self.scene.submit(
            evolve(STATEFUL, explicit_partitions=parallelism, session_partitions=parallelism, trigger_ms=0)
        )
        settle(self.scene, 0)

    def _add(self, _: int) -> None:
        self.scene.executor(str(self._executors), self._slots_each)
        self._executors += 1
        self._rescale()

    def _lose(self, _: int) -> None:
        self._executors -= 1
        self.scene.lose(str(self._executors))
        self._rescale()

    def _rescale(self) -> None:
        """Let enough time pass for a rescale to follow the change."""
        settle(self.scene, _LONG_MS)

    def _update_upper(self, upper: int) -> None:
        bounds = {"shuffle": (1, upper)}
        self.scene.send(ev.RequirementsRequested, query="counts", bounds=bounds, by="the vector")
        settle(self.scene, 0)

    def _pass(self, ms: int) -> None:
        settle(self.scene, ms)

    def _end(self, error: str | None) -> None:
        self.scene.terminated(error=error)

    def _cancel(self, _: int) -> None:
        self.scene.send(ev.CancelRequested, query="counts", by="the vector")
        settle(self.scene, 0)
