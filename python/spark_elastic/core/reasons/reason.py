"""How sentences are filled in.

In a sentence ``{slots:slot}`` reads "3 slots" (or "1 slot"), ``{batch_ms:ms}`` reads "312 ms", "1.5 s",
"5 min" or "1 h", and ``{read:bytes}`` reads "312 B", "1.5 MiB" or "2 GiB".
"""

from __future__ import annotations

from functools import cache
from string import Formatter
from typing import Any

from attrs import frozen

from spark_elastic.core.actions import DecisionKind


@frozen
class Reason:
    """One entry: the kind of its decisions, its sentence, and whether a query hears it only once."""

    kind: DecisionKind
    sentence: str
    once: bool = False


def duration(ms: float) -> str:
    """Format a duration as the sentences do."""
    for unit, name in ((3_600_000, "h"), (60_000, "min"), (1_000, "s")):
        if ms >= unit:
            return f"{ms / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{ms:.0f} ms"


def size(number: int) -> str:
    """Format a number of bytes as the sentences do."""
    for shift, name in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if number >= 1 << shift:
            return f"{number / (1 << shift):.1f}".removesuffix(".0") + f" {name}"
    return f"{number} B"


def _word(value: Any, kind: str) -> str:
    if not kind:
        return str(value)
    if kind == "ms":
        return duration(float(value))
    if kind == "bytes":
        return size(int(value))
    return f"{value} {kind}" if value == 1 else f"{value} {kind}s"


@cache
def _parts(sentence: str) -> tuple[tuple[str, str | None, str], ...]:
    """Split a sentence, once: the text before a value, the value's name (None at the end), and its kind."""
    return tuple((text, name, kind or "") for text, name, kind, _ in Formatter().parse(sentence))


def fill(sentence: str, **values: object) -> str:
    """Fill in a sentence. Raises KeyError if a value is missing."""
    filled = []
    for text, name, kind in _parts(sentence):
        filled.append(text if name is None else text + _word(values[name], kind))
    return "".join(filled)
