"""The kinds of values that a setting can have: how each is read, checked and written."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from attrs import frozen

from spark_elastic.core.keys.units import format_duration, format_size, parse_duration, parse_size
from spark_elastic.core.places import Place, has_login

NONE = "none"

_HOST = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?", re.ASCII)

Value = TypeVar("Value", covariant=True)
Choice = TypeVar("Choice", bound=str)


class Malformed(ValueError):
    """A text of several parts of which it is known which is wrong: what was `found`, and what is `allowed`.

    `better` is a text that could be typed instead, "" if none is known.
    """

    def __init__(self, found: str, allowed: str, better: str) -> None:
        super().__init__(found)
        self.found, self.allowed, self.better = found, allowed, better


@frozen(kw_only=True)
class Kind(Generic[Value]):
    """How the values of a key are read, checked and written.

    `allowed` says in words what may be typed, `example` is one such text, `choices` is all there is to choose
    from, empty if that has no end. With `listed` several of them may be typed, with commas between.
    """

    name: str
    parse: Callable[[str], Value]
    format: Callable[[Any], str]
    allowed: str
    example: str
    choices: tuple[str, ...] = ()
    listed: bool = False


def duration(low: int = 0, high: int | None = None, *, forever: bool = False) -> Kind[int]:
    """Allow durations from `low` to `high` ms, None: without end; `forever` allows -1, which is no limit."""

    def parse(text: str) -> int:
        value = parse_duration(text)
        if (value < low and not (forever and value < 0)) or (high is not None and value > high):
            raise ValueError(text)
        return max(value, -1)

    limits = f", at least {format_duration(low)}" if low else ""
    limits += f", at most {format_duration(high)}" if high is not None else ""
    return Kind(
        name="duration",
        parse=parse,
        format=format_duration,
        allowed=f"a duration such as 500ms, 30s or 5min{limits}{', or -1 for no limit' if forever else ''}",
        example="30s",
    )


def whole(low: int, high: int | None = None) -> Kind[int]:
    """Allow whole numbers from `low` to `high`."""

    def parse(text: str) -> int:
        value = int(text)
        if value < low or (high is not None and value > high):
            raise ValueError(text)
        return value

    limits = f"from {low} to {high}" if high is not None else f"from {low} up"
    return Kind(name="int", parse=parse, format=str, allowed=f"a whole number {limits}", example=str(low))


def number(limits: str, fits: Callable[[float], bool], example: str) -> Kind[float]:
    """Allow numbers that `fits` accepts; `limits` says which in words."""

    def parse(text: str) -> float:
        value = float(text)
        if not (math.isfinite(value) and fits(value)):
            raise ValueError(text)
        return value

    return Kind(name="number", parse=parse, format=str, allowed=f"a number {limits}", example=example)


def size(low: int) -> Kind[int]:
    """Allow sizes from `low` bytes up."""

    def parse(text: str) -> int:
        value = parse_size(text)
        if value < low:
            raise ValueError(text)
        return value

    return Kind(
        name="size",
        parse=parse,
        format=format_size,
        allowed=f"a size such as 64m or 1g, at least {format_size(low)}",
        example="64m",
    )


def choice(*choices: Choice, also: Mapping[str, Choice] | None = None) -> Kind[Choice]:
    """Allow `choices`, and what `also` says to mean one of them, in any case."""
    by_spelling = {spelling.lower(): choice for choice in choices for spelling in (choice, kebab(choice))}
    by_spelling.update(also or {})

    def parse(text: str) -> Choice:
        if text.lower() not in by_spelling:
            raise ValueError(text)
        return by_spelling[text.lower()]

    return Kind(
        name=" \\| ".join(f"`{choice}`" for choice in choices),
        parse=parse,
        format=str,
        allowed="one of " + ", ".join(choices),
        example=choices[0],
        choices=choices,
    )


def any_text(what: str, example: str) -> Kind[str]:
    """Allow any text that is not empty; `what` names it."""

    def parse(text: str) -> str:
        if not text:
            raise ValueError(text)
        return text

    return Kind(name=what, parse=parse, format=str, allowed=f"a {what}", example=example)


def _folder(text: str) -> str:
    if not text or has_login(text):
        raise ValueError(text)
    return text


def _prefix(text: str) -> str:
    return str(Place.parse(text))


def _host(text: str) -> str:
    name = text.lower().rstrip(".")
    if not _HOST.fullmatch(name):
        raise ValueError(text)
    return name


def several(kind: Kind[Value]) -> Kind[tuple[Value, ...]]:
    """Allow any number of values with commas between them, and `none`."""

    def parse(text: str) -> tuple[Value, ...]:
        parts = () if text.lower() == NONE else text.split(",")
        return tuple(kind.parse(part.strip()) for part in parts if part.strip())

    return Kind(
        name=f"{kind.name}, …",
        parse=parse,
        format=lambda values: ",".join(map(kind.format, values)) or NONE,
        allowed=f"{kind.allowed}, or more of them with commas between",
        example=kind.example,
    )


def or_none(kind: Kind[Value]) -> Kind[Value | None]:
    """Allow `none`, too."""
    return Kind(
        name=kind.name,
        parse=lambda text: None if text.lower() == NONE else kind.parse(text),
        format=lambda value: NONE if value is None else kind.format(value),
        allowed=f"{kind.allowed}, or {NONE}",
        example=kind.example,
        choices=kind.choices,
    )


FOLDER = Kind(
    name="folder",
    parse=_folder,
    format=str,
    allowed="a folder, without a login in it",
    example="hdfs://namenode/savepoints",
)

PREFIX = Kind(
    name="folder",
    parse=_prefix,
    format=str,
    allowed="an absolute path or a URI without a login, '.', '..', '%', '?' or '#' in it",
    example="hdfs://namenode/savepoints",
)

HOST = Kind(
    name="host",
    parse=_host,
    format=str,
    allowed="the name of a host, without scheme and port",
    example="spark.example.org",
)


def kebab(name: str) -> str:
    """Spell a name in Flink's style."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "-" + match[1].lower(), name)


def camel(name: str) -> str:
    """Spell a name in Spark's style."""
    return re.sub(r"-([a-z0-9])", lambda match: match[1].upper(), name)


BOOL: Kind[bool] = Kind(
    name="bool",
    parse=lambda text: {"true": True, "false": False}[text.lower()],
    format=lambda value: str(value).lower(),
    allowed="true or false",
    example="true",
)
