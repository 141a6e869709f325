"""Read and write lengths of time and sizes the way Spark and Flink spell them."""

from __future__ import annotations

import re

_TIME_UNITS_MS = {
    "ms": 1,
    "milli": 1,
    "millis": 1,
    "millisecond": 1,
    "milliseconds": 1,
    "s": 1_000,
    "sec": 1_000,
    "secs": 1_000,
    "second": 1_000,
    "seconds": 1_000,
    "m": 60_000,
    "min": 60_000,
    "mins": 60_000,
    "minute": 60_000,
    "minutes": 60_000,
    "h": 3_600_000,
    "hour": 3_600_000,
    "hours": 3_600_000,
    "d": 86_400_000,
    "day": 86_400_000,
    "days": 86_400_000,
}
_SIZE_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_NUMBER_AND_UNIT = re.compile(r"(-?\d+)\s*([a-z]*)", re.ASCII)


def parse_duration(text: str) -> int:
    """Return a duration in ms; a number without a unit counts ms, as in Spark and Flink.

    Raises ValueError if `text` is no whole number with one of the units ms, s, min, h, d or their long names.
    """
    match = _NUMBER_AND_UNIT.fullmatch(text.strip().lower())
    if match is None or (match[2] and match[2] not in _TIME_UNITS_MS):
        raise ValueError(f"no duration: {text!r}")
    return int(match[1]) * _TIME_UNITS_MS[match[2] or "ms"]


def format_duration(ms: int) -> str:
    """Return the shortest text without spaces that `parse_duration` reads back as `ms`."""
    if ms <= 0:
        return str(ms)
    for unit, factor in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if ms % factor == 0:
            return f"{ms // factor}{unit}"
    return f"{ms}ms"


def parse_size(text: str) -> int:
    """Return a size in bytes: a whole number with k, m, g or t (powers of 1024), also as kb or kib.

    Raises ValueError if `text` is something else or negative.
    """
    match = _NUMBER_AND_UNIT.fullmatch(text.strip().lower())
    unit = re.sub(r"(?<=[kmgt])i?b$", "", match[2]) if match else ""
    if match is None or unit not in _SIZE_UNITS or match[1].startswith("-"):
        raise ValueError(f"no size: {text!r}")
    return int(match[1]) * _SIZE_UNITS[unit]


def format_size(size: int) -> str:
    """Return the shortest text that `parse_size` reads back as `size` bytes."""
    for unit in ("t", "g", "m", "k"):
        if size and size % _SIZE_UNITS[unit] == 0:
            return f"{size // _SIZE_UNITS[unit]}{unit}"
    return str(size)
