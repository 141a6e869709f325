"""The findings of a run: for each, the shortest program found to show it, and a script of that program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import define

from integration.differential.compare import Difference
from integration.differential.half import Half


@define
class Finding:
    """A difference and a program that shows it; `first` is the number of the first program that showed it.

    `again` counts its reproductions in `TIMES` new contexts.
    """

    half: Half
    difference: Difference
    program: Any
    slots: int
    first: int
    seconds: float
    tries: int
    again: int = 0
    script: Path | None = None

    def covers(self, difference: Difference, program: Any) -> bool:
        """Return whether a program's difference counts as the same: it has all parts that this one needs."""
        return difference.kind == self.difference.kind and self.needs <= program.names

    @property
    def needs(self) -> frozenset[str]:
        """The parts of its program, without those that everything shrinks to."""
        return frozenset(self.program.names - self.half.simple)

    def write(self, folder: Path, number: int) -> None:
        """Write the script, which does not depend on this project."""
        title = f"{self.difference.kind}: {self.difference.text.splitlines()[0]}"
        self.script = folder / f"finding-{number}.py"
        self.script.write_text(self.half.script(self.program, self.slots, title), encoding="utf-8")

    def told(self) -> str:
        """Return a description in lines for the waiting user."""
        head = f"{self.difference.kind} ({self.difference.action}): {self.difference.text[:600]}"
        when = f"program {self.first}, {self.seconds:.0f} s; {self.slots} slots"
        repeats = f"came again {self.again} of {TIMES} times"
        return f"{head}\n{when}; {repeats}\n{self.half.body(self.program)}"

    def as_json(self) -> dict[str, Any]:
        """Return the finding for the last line of the output."""
        return {
            "kind": self.difference.kind,
            "text": self.difference.text[:300],
            "needs": sorted(self.needs),
            "slots": self.slots,
            "program": self.first,
            "seconds": round(self.seconds),
            "shrunk_in": self.tries,
            "again": self.again,
            "script": str(self.script),
        }


#: The number of reproductions tried, each in a context that has learned nothing yet.
TIMES = 3
