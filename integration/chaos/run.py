"""Run faults against a world, one step after another, and check it after each burst of them."""

from __future__ import annotations

import math
import random
import subprocess
import time
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import attrs
import psutil
from attrs import define, field

from integration.chaos.faults import Fault, Missed
from integration.chaos.invariants import MISSING, Size, final, recover, size_of, unknown_errors
from integration.chaos.phases import ILL, bring_about
from integration.chaos.plan import FAULTS, Plan, Step
from integration.chaos.pods import pods
from integration.chaos.report import Happened, Report
from integration.chaos.rows import now
from integration.chaos.settings import BOUNDED
from integration.chaos.standalone import standalone
from integration.chaos.world import World
from spark_elastic_tools.client import Failure

# By then, every kind of thread and file has existed once.
_WARM_STEPS = 10
# The time from the end of a driver to the end of its policy process.
_END_S = 10.0


@define
class Burst:
    """The events since the last recovery; anything that they can cause is not a defect."""

    policies: list[int]
    looked: int
    faults: list[Fault[Any]] = field(factory=list)
    ill: set[str] = field(factory=set)
    repeats_since: int | None = None
    steps: int = 0


@define
class Chaos:
    """One run."""

    world: World
    report: Report
    windows: list[tuple[int, int]] = field(factory=list)
    first_size: Size | None = None
    _burst: Burst | None = None

    def settle(self) -> bool:
        """Wait until the application runs; return whether it does."""
        found = recover(self.world, started=True)
        if self.world.mode == "old":
            self.windows.append((0, now()))  # the end of plain Spark's driver
        self._note(found.broken)
        return not found.broken

    def step(self, step: Step) -> Happened:
        """Run one step and return the result; unless it `goes_on`, wait for recovery."""
        if self._burst is None:
            self._burst = Burst([policy.pid for policy in self.world.policies()], now())
        burst = self._burst
        burst.steps += 1
        if step.phase in ILL:
            burst.ill.add(step.query)
        began = time.monotonic()
        phase = bring_about(self.world, step.query, step.phase)
        self.world.say(f"{step} meets {phase} after {time.monotonic() - began:.1f} s")
        struck = now()
        faults = [FAULTS[name]() for name in step.faults]
        burst.faults += faults
        if burst.repeats_since is None and any(fault.repeats for fault in faults):
            burst.repeats_since = struck
        broken: list[str] = []
        hits = tuple(self._strike(fault, step, broken) for fault in faults)
        self.world.say(f"hit {hits}")
        time.sleep(step.seconds)  # the duration of the faults
        healed = now()
        for fault in faults:
            self._try(fault.heal, broken)
        self._try(lambda world: world.calm(), broken)
        for fault in faults:
            self._try(fault.outcome, broken)
        self.world.say(f"calm after {(now() - healed) / 1000:.1f} s, broken: {broken}")
        happened = Happened(step=step, phase=phase, hits=hits, struck=struck, healed=healed)
        self.report.happened.append(happened)
        self._note(broken)
        self.report.write()
        if step.goes_on:
            self._note(self._uncaused(burst))
        else:
            self.end_burst()
            if self.first_size is None and len(self.report.happened) >= _WARM_STEPS:
                self._measure()
        return happened

    def end_burst(self) -> None:
        """Wait for recovery from the steps since the last one, and record what has not recovered."""
        if self._burst is None:
            return
        burst, self._burst = self._burst, None
        again = any(fault.ends_driver for fault in burst.faults)
        found = recover(self.world, started=again)
        recovered = now()
        self.world.say(f"recovered in {found.seconds} s, {self._threads()}, broken: {found.broken}")
        if burst.repeats_since is not None:
            self.windows.append((burst.repeats_since, recovered))
        self.report.happened[-1] = attrs.evolve(
            self.report.happened[-1], recovered=recovered, seconds=found.seconds, steps=burst.steps
        )
        self._note(found.broken + self._uncaused(burst))
        if self.world.mode in BOUNDED and any(MISSING in what for what in found.broken):
            self._get_executors()
        self.report.write()

    def _measure(self) -> None:
        with suppress(psutil.NoSuchProcess, subprocess.SubprocessError):
            if self.world.process.running:
                self.first_size = size_of(self.world)

    def _threads(self) -> str:
        with suppress(psutil.NoSuchProcess):
            return f"{psutil.Process(self.world.process.pid).num_threads()} threads"
        return "no driver"

    def _get_executors(self) -> None:
        """Request executors after some were missing, which is reported: the next steps should have them."""
        with suppress(Failure):
            self.world.ask_for_executors()
            self.world.say(f"asked for executors, recovered in {recover(self.world).seconds} s")

    def _strike(self, fault: Fault[Any], step: Step, broken: list[str]) -> str | None:
        try:
            return fault.strike(self.world, step.query, random.Random(f"{step.seed} {fault.name}"))
        except AssertionError as error:
            broken.append(str(error))
            return "it broke"
        except (Missed, Failure, LookupError) as why:
            # Another fault may have hit the process that it asks.
            self.world.say(f"{fault.name} has missed: {why}")
            return None

    def _try(self, part: Callable[[World], None], broken: list[str]) -> None:
        """Heal one fault on its own, so that its failure leaves no other fault in place for the next step."""
        try:
            part(self.world)
        except AssertionError as error:
            broken.append(str(error))

    def _uncaused(self, burst: Burst) -> list[str]:
        """Name the events since the last look that none of the faults explains."""
        said = []
        after = [policy.pid for policy in self.world.policies()]
        if after != burst.policies and not any(fault.loses_policy for fault in burst.faults):
            said.append(f"the policy process was {burst.policies} and is {after}")
            burst.policies = after
        since, burst.looked = burst.looked, now()
        if not self.world.plugin or any(fault.fails for fault in burst.faults):
            return said
        try:
            for name in self.world.queries():
                for failed in self.world.api.get(f"{self.world.path(name)}/exceptions")["exceptions"]:
                    if failed["at"] >= since and name not in burst.ill:
                        said.append(f"{name} has failed: {failed}")
        except Failure as failure:
            burst.looked = since
            self.world.say(f"the API says: {failure}")  # the invariants report it too
        return said

    def _note(self, broken: Iterable[str]) -> None:
        for what in broken:
            self.report.failed(what, len(self.report.happened), self.world.process)

    def finish(self, struck: Container[str]) -> None:
        """End everything and record the final findings; `struck` are the kinds of faults that ever hit."""
        found = final(self.world, self.windows, self.first_size)
        for what in (*found.broken, *self.report.never_hit(struck)):
            self.report.failed(what, len(self.report.happened), self.world.process, stacks=False)
        self.report.found = {
            "rescales": {"moved": found.moves, "in_place": found.in_place},
            "moved_at_once": found.at_once,
            "rows_compared": found.rows,
            "batch_jobs": found.jobs,
            "conversions": found.conversions,
            **self.world.oddities,
            "unknown_errors": unknown_errors(
                "\n".join(log.read_text(errors="replace") for log in self.world.logs)
            ),
        }


def run(folder: Path, plan: Plan, steps: Iterator[Step]) -> dict[str, Any]:
    """Run `steps` in a new world under `folder` and return the result; report the hits to `plan`."""
    report = Report(plan.seed, folder, plan.mode, plan.where)
    with _world(folder, plan) as made:
        chaos = Chaos(made, report)
        if chaos.settle():
            for step in steps:
                happened = chaos.step(step)
                plan.met(happened.pairs)
                # A query that has ended has not recovered, so there is a failure.
                if not made.process.running or (report.failures and made.has_ended()):
                    break
            chaos.end_burst()
        policies = made.policies() if made.process.running else []
        chaos.finish({name for name, _ in plan.hit})
    _, living = psutil.wait_procs(policies, timeout=_END_S)
    return report.close([*made.left_over(), *(f"policy process {policy.pid}" for policy in living)])


def _world(folder: Path, plan: Plan) -> AbstractContextManager[World]:
    """Return the application where the plan's faults strike, as a context manager."""
    if plan.where == "kubernetes":
        return pods(folder, restarts=plan.restarts)
    return standalone(folder, restarts=plan.restarts, links=plan.links, mode=plan.mode)


def chosen(plan: Plan, faults: int, minutes: float = math.inf) -> Iterator[Step]:
    """Let a plan choose steps up to this number of faults; none starts after this number of minutes."""
    done, end = 0, time.monotonic() + 60 * minutes
    while done < faults and time.monotonic() < end:
        step = plan.next(time.monotonic())
        done += len(step.faults)
        yield step
