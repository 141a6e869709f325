"""The texts that are kept beside a query's checkpoint: a first line with the form, then one for each fact."""

from __future__ import annotations

from collections.abc import Sequence

from spark_elastic.core.bounds.declared import shortened


class Unusable(ValueError):
    """What is kept cannot be read; the text says why."""


def lines_of(text: str, form: str) -> Sequence[str]:
    """Return the lines of a text that has to be of this form. Raises Unusable."""
    found, *lines = text.splitlines() or [""]
    if found != form:
        raise Unusable(f"it begins with {shortened(found)}, not with '{form}'")
    return lines


def unusable(line: str, why: str) -> Unusable:
    """Return what says that this line cannot be read."""
    return Unusable(f"{shortened(line)}: {why}")
