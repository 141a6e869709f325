"""A streaming program, as plain values and as text: a query, and the events while it runs."""

from __future__ import annotations

import itertools
from typing import Any

from attrs import frozen

from integration.differential.program import Chain, Promise
from integration.differential.script import PART, frames

LETTERS = "abc"


@frozen
class Moment:
    """An event in the life of the query: a method of the harness's `Run`, and its arguments."""

    name: str
    arguments: tuple[Any, ...] = ()


HAND_OVER = Moment("hand_over")


@frozen
class Stream:
    """A query over some inputs, its output mode, trigger and sink, and the events, in order."""

    chain: Chain
    inputs: int
    moments: tuple[Moment, ...]
    mode: str = "append"
    trigger: str = "processingTime"
    settings: tuple[tuple[str, str], ...] = ()
    into: str = "foreachBatch"

    @property
    def names(self) -> frozenset[str]:
        """Its parts: names of kinds and events, mode, trigger and sink."""
        kinds = {kind.name for kind in self.chain.kinds}
        happens = {moment.name for moment in self.moments}
        return frozenset(kinds | happens | {self.mode, self.trigger, self.into})

    @property
    def is_exact(self) -> bool:
        """Whether Spark guarantees which rows are emitted, not only their number."""
        return self.chain.promise >= Promise.ROWS

    @property
    def has_batch_job(self) -> bool:
        """Whether a batch job can return the same rows in the end."""
        unbatched = any(getattr(kind, "unbatched", False) for kind in self.chain.kinds)
        return self.is_exact and self.mode != "update" and not unbatched


#: The parts that all programs have or shrink to.
SIMPLE = frozenset({"input", "step", "append", "processingTime", "foreachBatch"})
END = "end"


def body(program: Stream) -> str:
    """Return the text, which needs a session and the names of the harness."""
    lines = [f"spark.conf.set({key!r}, {value!r})" for key, value in program.settings]
    lines.append(f"def made({', '.join(LETTERS[: program.inputs])}):")
    own: list[str] = []
    names = (f"frame{number}" for number in itertools.count(1))
    for text in frames(program.chain, names, own):
        lines += [f"    {line}" for line in text.splitlines()]
    lines.append(f"    return {own[-1]}")
    how = ", ".join(map(repr, (program.inputs, program.mode, program.trigger, program.into)))
    part = f", {PART}" if HAND_OVER in program.moments else ""
    lines.append(f"run = Run(spark, OUT, made, {how}{part})")
    for number, moment in enumerate(program.moments):
        call = f"run.{moment.name}({', '.join(map(repr, moment.arguments))})"
        lines.append(f"act({name(number)!r}, lambda: {call})" if moment.name == "step" else call)
    if program.has_batch_job:
        lines.append(f"act({END!r}, run.end)")
    lines.append("run.query.stop()")
    return "\n".join(lines) + "\n"


def name(number: int) -> str:
    """Return the name of a step's result."""
    return f"{number} step"
