"""The order of the steps: random from a seed, with pairs of fault and phase that have not met yet first."""

from __future__ import annotations

import json
import random
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen

from integration.chaos import (
    application_faults,
    connections,
    faults,
    network_faults,
    pod_faults,
    policy_faults,
    reset_faults,
    storage_faults,
)
from integration.chaos.faults import Fault
from integration.chaos.phases import ILL, PHASES_OF, RUNNING, WAITING
from integration.chaos.settings import BOUNDED, EAGER, STATEFUL_AT, Mode, Where

_ALL: tuple[type[Fault[Any]], ...] = (
    faults.KillExecutor,
    faults.KillWorker,
    faults.AddWorker,
    faults.Decommission,
    faults.AllWorkersGone,
    faults.FreezeExecutor,
    faults.FreezeWorker,
    faults.KillMaster,
    faults.SetBounds,
    faults.FlapBounds,
    faults.SetWrongBounds,
    faults.TakeSavepoint,
    policy_faults.KillPolicy,
    policy_faults.FreezePolicy,
    policy_faults.HangPolicy,
    policy_faults.TalkNonsense,
    policy_faults.NeverAnswer,
    policy_faults.AnswerLate,
    policy_faults.AnswerOddly,
    policy_faults.FillJournal,
    policy_faults.SlowJournal,
    storage_faults.StorageAway,
    storage_faults.StorageFails,
    storage_faults.StorageSlow,
    network_faults.CutLink,
    network_faults.SlowLink,
    reset_faults.ResetGateway,
    reset_faults.ResetWorker,
    application_faults.FreezeDriver,
    application_faults.KillDriver,
    application_faults.EndDriver,
    application_faults.StopContext,
    application_faults.StopQuery,
    application_faults.TakeQueryOver,
    application_faults.EndQuery,
    application_faults.SlowListener,
    connections.IdleAtUi,
    connections.IdleAtGateway,
    *pod_faults.FAULTS,
)
FAULTS = {fault.name: fault for fault in _ALL}
# The plugin gives up the policy after five processes in ten minutes, as it reports.
_POLICIES, _POLICIES_S = 4, 620.0
# The number of tries of a fault in a phase that count as one hit.
_TRIES = 2
# As one of two faults at once, these would only hide the effect of the other.
_ALONE = ("all_workers_gone", "bounds_refused")


@frozen(kw_only=True)
class Step:
    """One or two faults at once, while `query` is in `phase`, for `seconds`; `seed` chooses the targets.

    If it `goes_on`, the next step does not wait for recovery.
    """

    faults: tuple[str, ...]
    query: str
    phase: str
    seconds: float
    seed: int
    goes_on: bool = False


class Plan:
    """Chooses steps, and is notified of the hits.

    Without `restarts` it chooses no fault that ends a query of plain Spark, without `links` none that needs a
    network, and never one without a target in this `mode`, or at another place than `where`. Recovery must be
    complete after `burst` steps, or sooner if a fault ends the burst. Raises ValueError if no kind is left.
    """

    def __init__(
        self,
        seed: int,
        kinds: Iterable[str] = (),
        *,
        restarts: bool = True,
        links: bool = True,
        mode: Mode = "adaptive",
        where: Where = "standalone",
        burst: int = 1,
    ) -> None:
        self.seed = seed
        # Plain Spark does not restart queries.
        self.restarts = restarts and mode != "plain"
        self.links = links
        self.mode = mode
        self.where = where
        self._burst = burst
        self._in_burst = 0
        self._chance = random.Random(seed)
        self._names = [
            name
            for name, fault in FAULTS.items()
            if (not kinds or name in set(kinds))
            and (self.restarts or not fault.ends_queries)
            and (links or not fault.needs_links)
            and is_there(name, mode, where)
        ]
        if not self._names:
            raise ValueError("no fault of these kinds can be chosen")
        self._phases = [phase for phase in PHASES_OF[mode] if self.restarts or phase not in ILL]
        self._lost: deque[float] = deque(maxlen=_POLICIES)
        self._tried: Counter[tuple[str, str]] = Counter()
        self.hit: Counter[tuple[str, str]] = Counter()

    def next(self, clock_s: float) -> Step:
        """Choose the next step; `clock_s` is the current time in seconds of any clock."""
        first, phase = self._rarest(self._allowed(clock_s))
        names = [first]
        if first not in _ALONE and self._chance.random() < 1 / 3:
            others = [name for name in self._allowed(clock_s) if name not in (first, *_ALONE)]
            # Only one policy process exists at a time.
            others = [n for n in others if not (FAULTS[n].loses_policy and FAULTS[first].loses_policy)]
            if others:
                names.append(self._chance.choice(others))
        step = Step(
            faults=tuple(names),
            query=self._chance.choice(
                [name for name in STATEFUL_AT[self.where] if name != EAGER or phase not in WAITING]
            ),
            phase=phase,
            seconds=self._seconds([FAULTS[name] for name in names]),
            seed=self._chance.randrange(1 << 30),
            goes_on=self._goes_on(names),
        )
        if any(FAULTS[name].ends_driver for name in names):
            self._lost.clear()
        elif any(FAULTS[name].loses_policy for name in names):
            self._lost.append(clock_s)
        return step

    def _goes_on(self, names: list[str]) -> bool:
        self._in_burst += 1
        if self._in_burst < self._burst and not any(FAULTS[name].ends_burst for name in names):
            return True
        self._in_burst = 0
        return False

    def _seconds(self, kinds: list[type[Fault[Any]]]) -> float:
        """Return their duration (s), log-uniform: one to two seconds are as likely as eight to sixteen."""
        shortest = max(kind.shortest for kind in kinds)
        longest = max(min((kind.longest for kind in kinds if kind.longest > 0), default=0.0), shortest)
        share = self._chance.random()
        return round(shortest * (longest / shortest) ** share if shortest > 0 else longest * share, 2)

    def met(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Record the faults that hit something, each with the phase in which it did."""
        self.hit.update(pairs)

    def _allowed(self, clock_s: float) -> list[str]:
        spent = len(self._lost) == _POLICIES and clock_s - self._lost[0] < _POLICIES_S
        # A new driver starts with a new count.
        return [n for n in self._names if FAULTS[n].ends_driver or not (spent and FAULTS[n].loses_policy)]

    def _rarest(self, names: list[str]) -> tuple[str, str]:
        pairs = [(name, phase) for name in names for phase in self._phases]
        # A pair that can hardly be met is not tried forever.
        done = {pair: max(self.hit[pair], self._tried[pair] // _TRIES) for pair in pairs}
        fewest = min(done.values())
        chosen = self._chance.choice([pair for pair in pairs if done[pair] == fewest])
        self._tried[chosen] += 1
        return chosen


def write_steps(path: Path, steps: Iterable[Step]) -> None:
    """Write a script."""
    path.write_text("".join(json.dumps(attrs.asdict(step)) + "\n" for step in steps))


def read_steps(path: Path) -> Iterator[Step]:
    """Read a script, one step per line."""
    for line in path.read_text().splitlines():
        yield as_step(json.loads(line))


def of_mode(steps: Iterable[Step], mode: Mode, where: Where = "standalone") -> Iterator[Step]:
    """Leave out faults and phases that do not exist in this mode of the application, or in this place."""
    for step in steps:
        names = tuple(name for name in step.faults if is_there(name, mode, where))
        if names:
            phase = step.phase if step.phase in PHASES_OF[mode] else RUNNING
            yield attrs.evolve(step, faults=names, phase=phase)


def is_there(name: str, mode: Mode, where: Where) -> bool:
    """Return whether a fault has a target in this mode and place."""
    fault = FAULTS[name]
    if fault.where not in (None, where):
        return False
    return not ((mode == "plain" and fault.needs_plugin) or (mode not in BOUNDED and fault.needs_bounds))


def as_step(value: Mapping[str, Any]) -> Step:
    """Return a step from its JSON form."""
    return Step(**{**value, "faults": tuple(value["faults"])})
