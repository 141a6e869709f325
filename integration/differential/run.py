"""Generate programs until time is up, run each without and with the plugin, and shrink those that differ."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import hypothesis
from attrs import define, field
from hypothesis import HealthCheck, Phase

from integration.differential.application import Pair
from integration.differential.compare import Difference, Results, seconds, slower
from integration.differential.finding import TIMES, Finding
from integration.differential.half import Half
from integration.differential.measure import MEASURED

#: The number of programs from one seed: with more, Hypothesis would generate many that are nearly alike.
_HAND = 9
#: The number of hands played in one context, which learns from each.
_ROUND = 5
_PHASES = (Phase.generate, Phase.shrink)


class Found(Exception):
    """A program shows a difference that is not known yet."""

    def __init__(self, program: Any, difference: Difference) -> None:
        super().__init__(difference.kind)
        self.program, self.difference = program, difference


@define
class Search:
    """One run: the programs it tried, and its findings."""

    pair: Pair
    half: Half
    seed: int
    folder: Path
    programs: int = 0
    errors: int = 0
    unsteady: int = 0
    known: int = 0
    findings: list[Finding] = field(factory=list)
    _tried: Counter[str] = field(factory=Counter)
    _cost: dict[str, Counter[str]] = field(factory=lambda: {"plain": Counter(), "elastic": Counter()})
    _told: dict[str, Difference | None] = field(factory=dict)
    _began: float = field(factory=time.monotonic)

    def last(self, minutes: float, programs: int | None = None) -> None:
        """Search for this time, or for this number of programs."""
        until = self._began + 60 * minutes
        hand = 0
        while time.monotonic() < until and not (programs and self.programs >= programs):
            slots = self.half.slots[hand // _ROUND % len(self.half.slots)]
            if hand % _ROUND == 0:
                self.pair.renew(slots)
            self._play(hand, slots, until)
            hand += 1

    def _play(self, hand: int, slots: int, until: float) -> None:
        """Run some programs; if one differs, shrink it, which may exceed the remaining time."""
        wanted: list[Difference] = []
        first = tries = 0
        spent = 0.0

        def look(program: Any) -> None:
            nonlocal first, spent, tries, until
            text = self.half.body(program)
            if text not in self._told:
                if time.monotonic() > until:
                    return
                tries += 1
                self._told[text] = self._tried_out(program, text, is_new=not wanted)
            found = self._told[text]
            if found is None or self._covered(found, program) or (wanted and found.kind != wanted[0].kind):
                return
            if not wanted:
                print(f"{found.kind} in program {self.programs}, being shrunk", file=sys.stderr, flush=True)
                wanted.append(found)
                first, tries = self.programs, 0
                spent = time.monotonic() - self._began
                until = time.monotonic() + self.half.shrinking_s
            raise Found(program, found)

        made = hypothesis.given(self.half.programs)(look)
        made = hypothesis.settings(
            max_examples=_HAND,
            deadline=None,
            database=None,
            phases=_PHASES,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
            print_blob=False,
            verbosity=hypothesis.Verbosity.quiet,
        )(made)
        try:
            hypothesis.seed(self.seed * 100_003 + hand)(made)()
        except Found as found:
            finding = Finding(self.half, found.difference, found.program, slots, first, spent, tries)
            self._keep(finding)

    def _tried_out(self, program: Any, text: str, *, is_new: bool) -> Difference | None:
        """Return a difference that is not known yet, and that plain Spark does not show against itself."""
        plain, elastic = self.pair.run(text)
        if is_new:
            self.programs += 1
            self._note(text, plain, elastic)
            self._tried.update(program.names | {key for key, _ in program.settings})
            self.errors += any("error" in found for found in plain.values())
        found = self._differences(program, text, plain, elastic)
        unknown = [difference for difference in found if not self._covered(difference, program)]
        self.known += len(found) > len(unknown)
        if not unknown:
            return None
        if self.half.differences(program, plain, self.pair.run(text)[0]):
            self.unsteady += is_new
            return None
        return unknown[0]

    def _note(self, text: str, plain: Results, elastic: Results) -> None:
        """Append a program to the list of those that ran."""
        entry = {
            "program": self.programs,
            "text": text,
            "plain_s": round(seconds(plain), 2),
            "elastic_s": round(seconds(elastic), 2),
            "errors": [found["error"] for found in plain.values() if "error" in found],
            "plain": plain.get(MEASURED),
            "elastic": elastic.get(MEASURED),
        }
        self._cost["plain"].update(plain.get(MEASURED, {}))
        self._cost["elastic"].update(elastic.get(MEASURED, {}))
        with (self.folder / "programs.jsonl").open("a", encoding="utf-8") as notes:
            notes.write(json.dumps(entry) + "\n")

    def _differences(self, program: Any, text: str, plain: Results, elastic: Results) -> list[Difference]:
        found = self.half.differences(program, plain, elastic)
        if self.half.timed and not found and slower(seconds(plain), seconds(elastic)):
            times = [tuple(map(seconds, self.pair.run(text, apart=True))) for _ in range(3)]
            if all(slower(*pair) for pair in times):
                shown = ", ".join(f"{was:.2f} → {now:.2f}" for was, now in times)
                found = [Difference("slow", "all", f"seconds, plain → with the plugin: {shown}")]
        left = self.pair.contained()
        if left and not found:
            found = [Difference("contained", "all", left)]
        return found

    def _covered(self, difference: Difference, program: Any) -> bool:
        return any(finding.covers(difference, program) for finding in self.findings)

    def _keep(self, finding: Finding) -> None:
        """Try to reproduce a finding in new contexts, and write its script."""
        text = self.half.body(finding.program)
        for _ in range(TIMES):
            self.pair.renew(finding.slots)
            plain, elastic = self.pair.run(text)
            found = self._differences(finding.program, text, plain, elastic)
            finding.again += any(one.kind == finding.difference.kind for one in found)
        self.findings.append(finding)
        finding.write(self.folder, len(self.findings))
        print(finding.told(), file=sys.stderr, flush=True)

    def result(self) -> dict[str, Any]:
        """Return what was done and found, for the last line of the output."""
        return {
            "seed": self.seed,
            "minutes": round((time.monotonic() - self._began) / 60, 1),
            "programs": self.programs,
            "failing_in_both": self.errors,
            "unsteady_in_plain": self.unsteady,
            "known_again": self.known,
            "findings": [finding.as_json() for finding in self.findings],
            "cost": self._cost,
            "tried": dict(sorted(self._tried.items())),
        }
