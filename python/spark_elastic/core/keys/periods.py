"""Recurring periods, as typed by a user: a cron expression, a duration, and the limits that then apply.

0 8 * * MON-FRI for 10h name=day lowerBound=4 upperBound=32 minExecutors=6; 0 22 * * * for 8h upperBound=4
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import TypeVar
from zoneinfo import ZoneInfo

from attrs import frozen
from cronsim import CronSim, CronSimError

from spark_elastic.core.bounds.requirements import MAX_PARALLELISM
from spark_elastic.core.keys.key import NONE, Kind, Malformed, format_duration, parse_duration

# The due times of a cron expression, in a time zone: this is the only module of the core that knows what day
# it is.
# At clock changes, cronsim follows Debian's cron: a time in the skipped hour falls right after it, and a time
# in the repeated hour occurs once, unless it recurs each hour anyway. `zoneinfo` reads a zone from the
# machine's database (or from tzdata) when it is first named; the same name and time give the same answer
# after that.


DAY_MS = 86_400_000

_FIELDS = 5
_SLACK = timedelta(hours=4)
"""Due times are computed from this long before a day, so that they do not depend on the starting point."""


def wrong_with_cron(text: str) -> str | None:
    """Return the invalid part of a cron expression, None if it is valid."""
    if len(text.split()) != _FIELDS:
        return f"{len(text.split())} fields"
    try:
        next(CronSim(text, datetime(2026, 1, 1)))
    except CronSimError as error:
        return str(error).replace("Bad", "no valid")
    except StopIteration:
        return "no such day within 50 years"
    return None


def is_zone(text: str) -> bool:
    """Return whether a time zone is known by this name."""
    try:
        ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        return False
    return True


@lru_cache(maxsize=4_096)
def due(cron: str, zone: str, day: int) -> tuple[int, ...]:
    """Return the sorted due times of an expression (epoch ms) on a UTC day, numbered since the epoch.

    Expression and zone must have been checked.
    """
    begin = datetime.fromtimestamp(day * DAY_MS / 1_000, timezone.utc)
    end = begin + timedelta(days=1)
    found = []
    for local in CronSim(cron, (begin - _SLACK).astimezone(ZoneInfo(zone))):
        if local >= end:
            break
        if local >= begin:
            found.append(round(local.timestamp()) * 1_000)
    return tuple(sorted(set(found)))


SHORTEST_MS = 60_000
LONGEST_MS = 7 * DAY_MS
"""Limits of the duration of a period, in ms."""

_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,39}", re.ASCII)
_WHOLE = re.compile(r"[0-9]{1,6}", re.ASCII)
_WINDOW_FIELDS = ("lowerBound", "upperBound", "minExecutors")
_SCALE_UP = "scaleUp"


@frozen(kw_only=True)
class Period:
    """A period of `duration_ms` from each due time of `cron`; `name` is "" if it has none."""

    cron: str
    duration_ms: int
    name: str = ""

    @property
    def shown(self) -> str:
        """Its name in a sentence."""
        return self.name or f"'{self.cron} for {format_duration(self.duration_ms)}'"

    def text(self, **fields: int | str | None) -> str:
        """Return it as a user would type it."""
        given = {"name": self.name or None, **fields}
        written = [f"{name}={value}" for name, value in given.items() if value is not None]
        return " ".join((self.cron, "for", format_duration(self.duration_ms), *written))


@frozen(kw_only=True)
class Window(Period):
    """A period with limits: from `lower` to `upper` slots for a query, `min_executors` for the application.

    None: no limit; at least one is set.
    """

    lower: int | None = None
    upper: int | None = None
    min_executors: int | None = None


@frozen(kw_only=True)
class ExcludedPeriod(Period):
    """A period in which policies change nothing, or only scale up if `allows_up` is set."""

    allows_up: bool = False


Of = TypeVar("Of", bound=Period)


def windows() -> Kind[tuple[Window, ...]]:
    """Allow windows with limits."""
    return _several(
        _window,
        lambda one: one.text(lowerBound=one.lower, upperBound=one.upper, minExecutors=one.min_executors),
        "windows",
        "at least one of lowerBound=N, upperBound=N and minExecutors=N",
        "0 8 * * MON-FRI for 10h lowerBound=4",
    )


def excluded_periods() -> Kind[tuple[ExcludedPeriod, ...]]:
    """Allow periods in which nothing is changed."""
    return _several(
        _excluded,
        lambda one: one.text(allow=_SCALE_UP if one.allows_up else None),
        "periods",
        f"allow={_SCALE_UP} to forbid only scaling down",
        "0 18 24 12 * for 2d",
    )


def _several(
    read: Callable[[str], Of], write: Callable[[Of], str], name: str, fields: str, example: str
) -> Kind[tuple[Of, ...]]:
    def parse(text: str) -> tuple[Of, ...]:
        parts = [part.strip() for part in text.split(";") if part.strip()]
        if not parts:
            raise Malformed("nothing in it", f"one of these or {NONE}", example)
        found = []
        for part in [] if text.strip().lower() == NONE else parts:
            try:
                found.append(read(part))
            except Malformed as error:
                better = error.better and text.replace(part, error.better, 1)
                raise Malformed(error.found, error.allowed, better) from None
        names = [one.name for one in found if one.name]
        for one in names:
            if names.count(one) > 1:
                raise Malformed(f"the name {one} twice", "each name once", "")
        return tuple(found)

    return Kind(
        name=name,
        parse=parse,
        format=lambda values: "; ".join(map(write, values)) or NONE,
        allowed=f"CRON for DURATION, name=NAME if you like, and {fields}; more of them with ';' between; "
        f"or {NONE}",
        example=example,
    )


def _window(text: str) -> Window:
    period, fields = _period(text, _WINDOW_FIELDS)
    if not fields:
        raise Malformed(
            f"no limit in '{text}'", f"at least one of {', '.join(_WINDOW_FIELDS)}", f"{text} lowerBound=1"
        )
    lower, upper = _bound(text, fields, "lowerBound"), _bound(text, fields, "upperBound")
    if lower is not None and upper is not None and lower > upper:
        raise Malformed(
            f"lowerBound={lower} in '{text}'",
            f"up to its upperBound, {upper}",
            text.replace(f"lowerBound={lower}", f"lowerBound={upper}"),
        )
    return Window(
        cron=period.cron,
        duration_ms=period.duration_ms,
        name=period.name,
        lower=lower,
        upper=upper,
        min_executors=_bound(text, fields, "minExecutors", 0),
    )


def _excluded(text: str) -> ExcludedPeriod:
    period, fields = _period(text, ("allow",))
    allows = fields.get("allow")
    if allows is not None and allows.lower() != _SCALE_UP.lower():
        raise Malformed(
            f"allow={allows} in '{text}'", f"allow={_SCALE_UP}", text.replace(f"={allows}", f"={_SCALE_UP}")
        )
    return ExcludedPeriod(
        cron=period.cron, duration_ms=period.duration_ms, name=period.name, allows_up=allows is not None
    )


def _period(text: str, known: tuple[str, ...]) -> tuple[Period, Mapping[str, str]]:
    """Read the common part of all periods; return it with the other fields. Raises Malformed."""
    typed, word, rest = text.partition(" for ")
    length, *others = rest.split() or [""]
    if not word or not length:
        parts = text.split()
        better = " ".join((*parts[:5], "for 1h", *parts[5:]))
        raise Malformed(f"no duration in '{text}'", "CRON for DURATION", better)
    cron = " ".join(typed.upper().split())
    wrong = wrong_with_cron(cron)
    if wrong is not None:
        raise Malformed(
            f"'{cron}' with {wrong}",
            "a cron expression of five fields: minute, hour, day of the month, month, day of the week",
            f"0 8 * * MON-FRI for {rest}",
        )
    try:
        duration_ms = parse_duration(length)
    except ValueError:
        duration_ms = -1
    if not SHORTEST_MS <= duration_ms <= LONGEST_MS:
        better = " ".join((typed, "for 1h", *others))
        raise Malformed(f"'for {length}'", "a duration from 1min to 7d, without a space", better)
    fields: dict[str, str] = {}
    for other in others:
        key, equals, value = other.partition("=")
        names = {one.lower(): one for one in ("name", *known)}
        field = names.get(key.lower())
        if field is None or not equals or not value or field in fields:
            raise Malformed(
                f"'{other}' in '{text}'", f"{', '.join(names.values())}, each once with = and a value", ""
            )
        fields[field] = value
    name = fields.pop("name", "")
    if name and not _NAME.fullmatch(name):
        raise Malformed(f"name={name}", "up to 40 letters, digits, '_', '-' and '.'", "")
    return Period(cron=cron, duration_ms=duration_ms, name=name), fields


def _bound(text: str, fields: Mapping[str, str], name: str, least: int = 1) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if not _WHOLE.fullmatch(value) or not least <= int(value) <= MAX_PARALLELISM:
        better = text.replace(f"{name}={value}", f"{name}={max(1, least)}")
        raise Malformed(
            f"{name}={value} in '{text}'", f"a whole number from {least} to {MAX_PARALLELISM}", better
        )
    return int(value)
