"""The definition of a setting: its name, the kind of its values, default and sentence."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, TypeVar

import attrs
from attrs import frozen

# ---- Folders of file systems, compared as Hadoop understands them: which one is below which.


# In Hadoop, the first colon before any slash ends the scheme, and an authority follows two slashes.
_PARTS = re.compile(
    r"(?:(?P<scheme>[a-z][a-z0-9+.-]*):)?(?://(?P<authority>[^/]*))?(?P<path>(?:/.*)?)", re.IGNORECASE
)
# Refused, so that no rule depends on which layer decodes, truncates or reverses these characters.
_AMBIGUOUS = re.compile(r"[\x00-\x1f\x7f%?#\\]")
# In these schemes, a name before the @ is that of a container; in all others it is a login.
_WITH_CONTAINER = ("abfs", "abfss", "wasb", "wasbs")


@frozen
class Place:
    """A folder: the scheme of its file system ("" for the default one), authority, and path from the root."""

    scheme: str
    authority: str
    segments: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Place:
        """Read an absolute path or a URI. Raises ValueError with the problem, but without the text."""
        if text != text.strip() or _AMBIGUOUS.search(text):
            raise ValueError("it has surrounding blanks, or one of % ? # \\ or a control character in it")
        found = _PARTS.fullmatch(text)
        if found is None or not (found["path"] or found["authority"]):
            raise ValueError("it is neither an absolute path nor a URI")
        scheme, authority = (found["scheme"] or "").lower(), found["authority"] or ""
        if authority and not scheme:
            raise ValueError("it names a host without a scheme")
        if has_login(text):
            raise ValueError("it has a login in it")
        segments = tuple(segment for segment in found["path"].split("/") if segment)
        if not {".", ".."}.isdisjoint(segments):
            raise ValueError("it has '.' or '..' in it")
        return cls(scheme, authority, segments)

    def is_within(self, other: Place) -> bool:
        """Return whether it is the other folder, or below it."""
        same = (self.scheme, self.authority) == (other.scheme, other.authority)
        return same and self.segments[: len(other.segments)] == other.segments

    def __str__(self) -> str:
        scheme = f"{self.scheme}:" if self.scheme else ""
        authority = f"//{self.authority}" if self.authority else ""
        return f"{scheme}{authority}/{'/'.join(self.segments)}"


def has_login(text: str) -> bool:
    """Return whether a URI contains a user's name or password."""
    found = _PARTS.fullmatch(text)
    user, at, _ = ((found and found["authority"]) or "").rpartition("@")
    with_container = found is not None and (found["scheme"] or "").lower() in _WITH_CONTAINER
    return bool(at) and (":" in user or not with_container)


# ---- Reads and writes durations and sizes in the spellings of Spark and Flink.


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

    Raises ValueError unless `text` is a whole number, optionally with one of the units ms, s, min, h, d or
    their long names.
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


# ---- The kinds of values that a setting can have: how each is read, checked and written.


NONE = "none"

# Leading zeros are refused: YAML reads such a number as octal.
_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]{0,17})", re.ASCII)
_HOST = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?", re.ASCII)

Value = TypeVar("Value", covariant=True)
Choice = TypeVar("Choice", bound=str)


class Malformed(ValueError):
    """A text of several parts with a known wrong one: the part that was `found`, and what is `allowed`.

    `better` is a text that could be typed instead, "" if none is known.
    """

    def __init__(self, found: str, allowed: str, better: str) -> None:
        super().__init__(found)
        self.found, self.allowed, self.better = found, allowed, better


@frozen(kw_only=True)
class Kind(Generic[Value]):
    """The way to read, check and write the values of a key.

    `allowed` describes the accepted texts in words, and `example` is one of them. `choices` are all accepted
    values, empty if their number is unlimited. With `listed`, several of them may be typed, separated by
    commas.
    """

    name: str
    parse: Callable[[str], Value]
    format: Callable[[Any], str]
    allowed: str
    example: str
    choices: tuple[str, ...] = ()
    listed: bool = False


def duration(low: int = 0, high: int | None = None, *, forever: bool = False) -> Kind[int]:
    """Allow durations from `low` to `high` ms, None: no upper limit; `forever` allows -1 for no limit."""

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


def whole(low: int, high: int | None = None, *, unbounded: bool = False) -> Kind[int]:
    """Allow whole numbers from `low` to `high`; `unbounded` allows -1 for no bound."""

    def parse(text: str) -> int:
        if not _WHOLE.fullmatch(text):
            raise ValueError(text)
        value = int(text)
        if unbounded and value == -1:
            return value
        if value < low or (high is not None and value > high):
            raise ValueError(text)
        return value

    limits = f"from {low} to {high}" if high is not None else f"from {low} up"
    return Kind(
        name="int",
        parse=parse,
        format=str,
        allowed=f"a whole number {limits}{', or -1 for no bound' if unbounded else ''}",
        example="-1" if unbounded else str(low),
    )


def number(limits: str, fits: Callable[[float], bool], example: str) -> Kind[float]:
    """Allow numbers that `fits` accepts; `limits` describes them in words."""

    def parse(text: str) -> float:
        value = float(text)
        if not (math.isfinite(value) and fits(value)):
            raise ValueError(text)
        return value

    return Kind(name="number", parse=parse, format=str, allowed=f"a number {limits}", example=example)


def size(low: int) -> Kind[int]:
    """Allow sizes of at least `low` bytes."""

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
    """Allow `choices`, and the synonyms in `also`, in any case."""
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
        allowed=f"{kind.allowed}, or several, separated by commas",
        example=kind.example,
    )


def or_none(kind: Kind[Value]) -> Kind[Value | None]:
    """Also allow `none`."""
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

PATH_PREFIX = Kind(
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


PREFIX = "spark.elastic."

View = TypeVar("View", bound=attrs.AttrsInstance)


PerQuery = Literal["always", "start"]


@frozen(eq=False)
class Key(Generic[Value]):
    """One setting; `name` is without the prefix, `aliases` are its older names.

    `default` is that of reactive mode, `adaptive` that of adaptive mode. `per_query` says whether a query can
    have a value of its own, and when a new one takes effect: "always" from its next decision on, "start" at
    its next start. None: there is one value for the whole application.
    """

    name: str
    kind: Kind[Value]
    default: Value
    doc: str
    aliases: tuple[str, ...] = attrs.field(default=(), kw_only=True)
    per_query: PerQuery | None = attrs.field(default=None, kw_only=True)
    adaptive: Value = attrs.field(kw_only=True)

    @adaptive.default
    def _same_in_both_modes(self) -> Value:
        return self.default

    @property
    def full_name(self) -> str:
        """The canonical spelling."""
        return PREFIX + self.name

    @property
    def by_mode(self) -> bool:
        """Whether the default differs between the modes."""
        return bool(self.default != self.adaptive)

    def format(self, value: Any) -> str:
        """Return `value` as a user would type it."""
        return NONE if value is None else self.kind.format(value)


_METADATA = "key"


def of(key: Key[Value], validator: Callable[[Any, Any, Any], Any] | None = None) -> Value:
    """Declare the field of a settings class that holds the value of `key`, with its default."""
    # Like attrs' own field(), it declares the field's value as its return type.
    value: Value = attrs.field(default=key.default, validator=validator, metadata={_METADATA: key})
    return value


def key_of(field: attrs.Attribute[Any]) -> Key[Any] | None:
    """Return the key whose value a field holds, None if it holds something else."""
    key: Key[Any] | None = field.metadata.get(_METADATA)
    return key


def view_of(view: type[View], values: Mapping[Key[Any], Any], **others: Any) -> View:
    """Fill the fields of `view` that hold the value of a key; `others` take precedence."""
    return view(**{**fields_of(view, values), **others})


def fields_of(view: type[attrs.AttrsInstance], values: Mapping[Key[Any], Any]) -> dict[str, Any]:
    """Return the fields of `view` that hold the value of one of these keys, by name, with their values."""
    keys = {field.name: key_of(field) for field in attrs.fields(view)}
    return {name: values[key] for name, key in keys.items() if key is not None and key in values}


# ---- Spark's own settings that are on or off.


def is_on(conf: Mapping[str, str], key: str) -> bool:
    """Read such a setting as Spark does, whatever its case; it is off by default."""
    return conf.get(key, "false").strip().lower() == "true"
