"""What a run was: its steps as they happened, what broke, and the result as one JSON object."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from integration.chaos.plan import Step, write_steps
from integration.jdk_tools import JSTACK, tool_output
from spark_elastic.demo.processes import LoggedProcess

_TAIL_LINES = 60


@frozen(kw_only=True)
class Happened:
    """A step as it came: the phase that it met, what each fault has hit, times in epoch ms."""

    step: Step
    phase: str
    hits: tuple[str, ...]
    struck: int
    healed: int
    recovered: int
    seconds: float

    def line(self) -> str:
        """Say it in a line."""
        struck = " + ".join(f"{name} ({hit})" for name, hit in zip(self.step.faults, self.hits, strict=False))
        return f"{self.struck} {struck} in {self.step.query} {self.phase}, recovered in {self.seconds:g} s"


@define
class Report:
    """Everything about one run; `folder` has all that was written."""

    seed: int
    folder: Path
    happened: list[Happened] = field(factory=list)
    failures: list[dict[str, object]] = field(factory=list)

    def failed(self, what: str, number: int, log: LoggedProcess, *, stacks: bool = True) -> None:
        """Note that an invariant is broken, with all that helps to find out why."""
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
            file.write_text(tool_output(JSTACK, str(log.pid)))
            failure["stacks"] = str(file)
        self.failures.append(failure)

    def script(self) -> Path:
        """Write the steps so far as a script that `--script` takes."""
        path = self.folder / "steps.jsonl"
        write_steps(path, (happened.step for happened in self.happened))
        return path

    def result(self, **more: object) -> dict[str, Any]:
        """Return the result."""
        pairs = Counter((name, h.phase) for h in self.happened for name in h.step.faults)
        by_fault: dict[str, dict[str, int]] = {}
        for (name, phase), times in sorted(pairs.items()):
            by_fault.setdefault(name, {})[phase] = times
        seconds = [happened.seconds for happened in self.happened]
        return {
            "seed": self.seed,
            "steps": len(self.happened),
            "faults": pairs.total(),
            "by_fault_and_phase": by_fault,
            "recover_s": {
                "p50": round(statistics.median(seconds), 2) if seconds else None,
                "max": max(seconds, default=None),
            },
            **more,
            "failures": self.failures,
            "script": str(self.script()),
        }

    def write(self, result: dict[str, object]) -> None:
        """Write the result beside everything else."""
        (self.folder / "result.json").write_text(json.dumps(result, indent=1) + "\n")
