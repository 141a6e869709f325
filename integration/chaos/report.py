"""The report of a run: its steps as they happened, what broke, and the result as one JSON object."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any

import attrs
from attrs import define, field, frozen

from integration.chaos.plan import Step, as_step, write_steps
from integration.chaos.settings import Mode, Where
from integration.chaos.world import DriverProcess
from integration.jdk_tools import write_stacks

RESULT, HAPPENED = "result.json", "happened.jsonl"
_TAIL_LINES = 60
# A kind of fault that misses this often and never hits, in this run or an earlier one, cannot hit.
_TRIES = 5


@frozen(kw_only=True)
class Happened:
    """A step as it happened: the phase it met, and the hit of each fault or None; times in epoch ms.

    Recovery from the last `steps` steps took `seconds`; None if the next step came before it.
    """

    step: Step
    phase: str
    hits: tuple[str | None, ...]
    struck: int
    healed: int
    recovered: int | None = None
    seconds: float | None = None
    steps: int = 1

    @property
    def struck_by(self) -> tuple[str, ...]:
        """The faults that hit something."""
        return tuple(name for name, hit in zip(self.step.faults, self.hits, strict=True) if hit is not None)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The faults that hit something, each with the phase that it met."""
        return tuple((name, self.phase) for name in self.struck_by)

    @property
    def own_seconds(self) -> float | None:
        """The seconds of recovery if they belong to this step alone."""
        return self.seconds if self.steps == 1 else None

    def line(self) -> str:
        """Return a description in one line."""
        struck = " + ".join(
            f"{name} ({hit or 'nothing'})" for name, hit in zip(self.step.faults, self.hits, strict=True)
        )
        then = "the next at once" if self.seconds is None else f"recovered in {self.seconds:g} s"
        return f"{self.struck} {struck} in {self.step.query} {self.phase}, {then}"


@define
class Report:
    """The report of one run; `mode` and `where` are those of `Plan`, `folder` holds all that was written."""

    seed: int
    folder: Path
    mode: Mode = "adaptive"
    where: Where = "standalone"
    happened: list[Happened] = field(factory=list)
    failures: list[dict[str, object]] = field(factory=list)
    found: dict[str, object] = field(factory=dict)

    def failed(self, what: str, number: int, log: DriverProcess, *, stacks: bool = True) -> None:
        """Record a broken invariant, with everything that helps to find the cause."""
        failure: dict[str, object] = {
            "what": what,
            "after_fault": number,
            "seed": self.seed,
            "faults": [happened.line() for happened in self.happened[-5:]],
            "folder": str(self.folder),
            "journal": [str(path) for path in (self.folder / "journal").glob("*")],
            "log_tail": log.log_tail(_TAIL_LINES).splitlines(),
        }
        if stacks and log.running:
            file = self.folder / f"stacks-{len(self.failures)}.txt"
            if write_stacks(log.pid, file):
                failure["stacks"] = str(file)
        self.failures.append(failure)

    def never_hit(self, struck: Container[str]) -> list[str]:
        """Name the frequently tried kinds of faults that are not among those that have `struck`."""
        tried = Counter(name for happened in self.happened for name in happened.step.faults)
        return [
            f"{name} has hit nothing in {times} tries"
            for name, times in sorted(tried.items())
            if times >= _TRIES and name not in struck
        ]

    def write(self) -> Path:
        """Write the steps so far as a script for `--script`, and their results next to it."""
        path = self.folder / "steps.jsonl"
        write_steps(path, (happened.step for happened in self.happened))
        lines = (json.dumps(attrs.asdict(happened)) + "\n" for happened in self.happened)
        (self.folder / HAPPENED).write_text("".join(lines))
        return path

    def close(self, left: Iterable[str]) -> dict[str, Any]:
        """Return the result, and write it next to everything else; `left` are processes that still run."""
        pairs = Counter(pair for happened in self.happened for pair in happened.pairs)
        by_fault: dict[str, dict[str, int]] = {}
        for (name, phase), times in sorted(pairs.items()):
            by_fault.setdefault(name, {})[phase] = times
        result = {
            "seed": self.seed,
            "mode": self.mode,
            "where": self.where,
            "steps": len(self.happened),
            "faults": pairs.total(),
            "missed": sum(len(happened.step.faults) for happened in self.happened) - pairs.total(),
            "by_fault_and_phase": by_fault,
            "recover_s": spread(happened.seconds for happened in self.happened),
            "recover_s_by_fault": {
                name: spread(h.own_seconds for h in self.happened if name in h.struck_by) for name in by_fault
            },
            **self.found,
            "left_over": list(left),
            "failures": self.failures,
            "script": str(self.write()),
        }
        write_result(self.folder, result)
        return result


def write_result(folder: Path, result: dict[str, Any]) -> None:
    """Write the result of a run into its folder."""
    (folder / RESULT).write_text(json.dumps(result, indent=1) + "\n")


def broken(result: dict[str, Any]) -> bool:
    """Return whether a run found a defect."""
    return any(result.get(kind) for kind in ("failures", "unknown_errors", "left_over"))


def read_happened(folder: Path) -> list[Happened]:
    """Read the steps of the run that wrote to `folder`. Raises FileNotFoundError."""
    found = []
    for line in (folder / HAPPENED).read_text().splitlines():
        value = json.loads(line)
        step, hits = as_step(value.pop("step")), tuple(value.pop("hits"))
        found.append(Happened(step=step, hits=hits, **value))
    return found


def spread(seconds: Iterable[float | None]) -> dict[str, float | None]:
    """Return the median (rounded to 10 ms) and the maximum of the known values; None without any."""
    known = [one for one in seconds if one is not None]
    return {
        "p50": round(statistics.median(known), 2) if known else None,
        "max": max(known, default=None),
    }
