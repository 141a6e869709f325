"""What is shown of an error where there is room for one line."""

from __future__ import annotations

_TRACEBACK = "Traceback (most recent call last):"


def summary(error: str) -> str:
    """Return the line in which Python says what was raised, where there is a traceback, else all of `error`.

    What a call of Java's has thrown stands in the line after it.
    """
    _, found, trace = error.rpartition(_TRACEBACK)
    if not found:
        return error
    lines = trace.splitlines()
    for number, line in enumerate(lines):
        if line and not line[0].isspace() and not line.startswith("…"):
            more = lines[number + 1] if number + 1 < len(lines) else ""
            return line.rstrip() + (more.rstrip() if more.startswith(":") else "")
    return error
