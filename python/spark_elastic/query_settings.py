"""Settings for single queries, given among the application's settings.

Bounds are ``spark.elastic.query.NAME.lowerBound`` and ``….upperBound``; a source has
``spark.elastic.query.NAME.source-0.lowerBound``. ``….priority``, ``….weight`` and ``….slotSharingGroup`` say
how the query shares slots with others; a source can have a slot-sharing group as well. ``….savepoint`` is a
savepoint to start from. It is only checked here, because the shim reads it before the policy learns of the
query. Settings of the application that a query can override have the same names there, such as
``….restartStrategy.type``. NAME is the query's own name, which may contain dots and dashes, or a pattern of
names. Only the part after NAME, and the vertex before that part, is a key.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any, Literal

from attrs import define, field, frozen

from spark_elastic.core.bounds import declared
from spark_elastic.core.bounds.declared import NO_BOUND, NOTHING_WANTED, WantedBounds, WantedSharing
from spark_elastic.core.keys import PER_QUERY, called, key
from spark_elastic.core.keys.key import Key
from spark_elastic.core.name_patterns import is_pattern
from spark_elastic.core.settings import contradictions
from spark_elastic.settings_errors import refused_value

# Settings of single queries, wherever they are written: which ones exist, and errors about the others.


ALLOWED = (
    "schedulerMode, policy, explicitParallelism, stateStore, maxParallelism, adaptiveScheduler.…, "
    "schedule.…, autoscale.… and restartStrategy.…"
)
"""The settings that a query can override, in short."""

_LIKE = 0.75

Wrong = Literal["of_application", "refused", "said_twice"]
"""What can be wrong with a setting: a query cannot have it, its value is invalid, or it has two values."""


@define
class OwnSettings:
    """The settings of one query, collected one by one: text by setting name.

    `first` has the place where each setting was first found, and its text there. The caller words the errors.
    """

    texts: dict[str, str] = field(factory=dict, init=False)
    first: dict[str, tuple[str, str]] = field(factory=dict, init=False)

    def add(self, key: Key[Any], where: str, text: str | None) -> Wrong | None:
        """Add a setting, with `text` None if it has none; return what is wrong with it, if anything."""
        if key.per_query is None:
            return "of_application"
        if text is None:
            return "refused"
        try:
            value = key.format(key.kind.parse(text))
        except (ValueError, KeyError):
            return "refused"
        self.first.setdefault(key.name, (where, text))
        return None if self.texts.setdefault(key.name, value) == value else "said_twice"

    def contradictions(self, prefix: str) -> list[str]:
        """Return the contradictions between settings; `prefix` comes before the name of each setting."""
        keys = ((PER_QUERY[name], text) for name, text in self.texts.items())
        return contradictions({key: key.kind.parse(text) for key, text in keys}, prefix=prefix)


def split(name: str) -> tuple[str, Key[Any]] | None:
    """Split ``NAME.KEY`` at the longest known setting name; return None if there is none.

    Both the name of a query and that of a setting may contain dots.
    """
    parts = name.split(".")
    for start in range(1, len(parts)):
        key = called(".".join(parts[start:]))
        if key is not None and parts[0]:
            return ".".join(parts[:start]), key
    return None


def nearest(name: str) -> tuple[str, str] | None:
    """Split ``NAME.KEY`` at the setting probably meant; return the query's name and the setting's name."""
    parts = name.split(".")
    guesses = (
        (difflib.SequenceMatcher(None, ".".join(parts[start:]).lower(), key.lower()).ratio(), start, key)
        for start in range(1, len(parts))
        for key in PER_QUERY
    )
    best = max(guesses, default=None)
    if best is None or best[0] < _LIKE:
        return None
    return ".".join(parts[: best[1]]), best[2]


PREFIX = f"{key.PREFIX}query."
EXAMPLES = ("query.NAME.lowerBound", "upperBound", "target")
DOC = (
    "Min and max partitions of the query with this name (adaptive mode), and the partitions it should have "
    "in between where no policy decides: executors are requested for that target, and no query gets more "
    "than its target before all have theirs. -1: no bound, no target. With `.source-0` after the name: min "
    "and max tasks that read its first source, which has no target. The policy file takes precedence. In a "
    "name, `*` matches any text and `?` one character, in all settings of queries by name."
)
KEYS_EXAMPLE = "query.NAME.KEY"
KEYS_DOC = (
    "Any setting marked in the column *Per query*, for the query with this name, such as "
    "`query.orders.restartStrategy.type`."
)
SHARING_DOCS = {
    "query.NAME.priority": (
        "int",
        "0",
        "If there are too few slots for all lower bounds, queries with a higher priority get theirs "
        "first; of equal ones, the one submitted first (adaptive mode).",
    ),
    "query.NAME.weight": (
        "number above 0",
        "1",
        "If there are too few slots for all upper bounds, slots above the lower bounds are divided by "
        "weight (adaptive mode).",
    ),
    "query.NAME.slotSharingGroup": (
        "name",
        "none",
        "Queries in one group use the same slots: a group needs as many as its widest query, and "
        "groups add up (adaptive mode). With `.source-0` after the name: the group of its first "
        "source. None: a group of its own if anything is declared for the query, otherwise `default`.",
    ),
}
SAVEPOINT_EXAMPLE = "query.NAME.savepoint"
SAVEPOINT_DOC = (
    "Savepoint (a folder) that the query with this name starts from if its checkpoint is new: "
    "offsets and state, under a new query id. A checkpoint that already has a micro-batch is "
    "resumed instead. Patterns of names are not allowed."
)
Bounds = Mapping[str, WantedBounds]

_SAVEPOINT = "savepoint"
_SHARING = {
    "priority": "priority",
    "weight": "weight",
    "slotSharingGroup": "slotSharingGroup",
    "slot-sharing-group": "slotSharingGroup",
}
_ALLOWED = f"lowerBound, upperBound, target, priority, weight, slotSharingGroup, savepoint, {ALLOWED}"
_SOURCE = re.compile(r"(.+)\.(source-\d+)", re.ASCII)
_ENDS = {
    "lowerBound": "lower",
    "lower-bound": "lower",
    "upperBound": "upper",
    "upper-bound": "upper",
    "target": "target",
}


@frozen
class QuerySettings:
    """Settings by query name: bounds, bounds of sources by vertex, slot sharing, and overridden settings."""

    bounds: Bounds = field(factory=dict)
    source_bounds: Mapping[str, Bounds] = field(factory=dict)
    sharing: Mapping[str, WantedSharing] = field(factory=dict)
    settings: Mapping[str, Mapping[str, str]] = field(factory=dict)


def is_one(name: str) -> bool:
    """Return whether a name is a setting of a query, or an attempt at one."""
    return name.startswith(PREFIX)


def is_bound(name: str) -> bool:
    """Return whether a name is a bound or target of a query, or a bound of one of its sources."""
    return is_one(name) and name.rpartition(".")[2] in _ENDS


def read(conf: Mapping[str, str]) -> tuple[QuerySettings, tuple[str, ...]]:
    """Return the settings of queries, and all errors."""
    found = _Found()
    for name, text in sorted(conf.items()):
        if is_one(name):
            found.add(name, text.strip())
    return found.together()


@define
class _Found:
    """Collects settings name by name; a wrong one is skipped and adds an error."""

    _ends: dict[tuple[str, str], dict[str, int]] = field(factory=dict)
    _shares: dict[str, WantedSharing] = field(factory=dict)
    _own: dict[str, OwnSettings] = field(factory=dict)
    _errors: list[str] = field(factory=list)
    _errors_of_own: list[str] = field(factory=list)

    def add(self, name: str, text: str) -> None:
        """Add a setting."""
        rest = name.removeprefix(PREFIX)
        if (divided := split(rest)) is not None:
            self._setting(name, *divided, text)
            return
        query, _, end = rest.rpartition(".")
        if query and end == _SAVEPOINT:
            self._savepoint(name, query, text)
        elif query and end in _SHARING:
            self._sharing(name, query, _SHARING[end], text)
        elif query and end in _ENDS:
            self._bound(name, query, _ENDS[end], text)
        else:
            self._unknown(name, query, end)

    def _setting(self, name: str, query: str, key: Key[Any], text: str) -> None:
        of_source = _SOURCE.fullmatch(query)
        if of_source is not None and key.per_query is not None:
            meant = f"{_name(of_source[1])}.{key.name}"
            self._errors_of_own.append(
                f"{name} is of a source, allowed is one for the whole query: set {meant}={text}"
            )
            return
        own = self._own.setdefault(query, OwnSettings())
        match own.add(key, name, text):
            case "of_application":
                self._errors_of_own.append(
                    f"{name} is for one query, allowed is {key.name} for the whole application only: "
                    f"set {key.full_name}={text}"
                )
            case "refused":
                self._errors_of_own.append(refused_value(key, name, text, prefix=f"{_name(query)}."))
            case "said_twice":
                first, before = own.first[key.name]
                self._errors_of_own.append(
                    f"{first} is '{before}' and {name} is '{text}', but they are one setting: "
                    f"keep only {_name(query)}.{key.name}={before}"
                )

    def _savepoint(self, name: str, query: str, text: str) -> None:
        if not text:
            self._errors.append(f"{name} is empty, allowed is the folder of a savepoint: set it or remove it")
        elif is_pattern(query):
            self._errors.append(
                f"{name} is for a pattern of names, allowed is one name, since a savepoint is of one "
                f"query: set {PREFIX}NAME.{_SAVEPOINT}={text}"
            )

    def _sharing(self, name: str, query: str, end: str, text: str) -> None:
        try:
            of_query, share = _read_sharing(query, end, text)
        except ValueError as error:
            self._errors.append(f"{name} {error}")
        else:
            self._shares[of_query] = share.over(self._shares.get(of_query, NOTHING_WANTED))

    def _bound(self, name: str, query: str, end: str, text: str) -> None:
        bound = _read(text)
        if bound is None:
            self._errors.append(
                f"{name} is '{text}', allowed is a whole number from 1 up, or -1 for no bound: set {name}=1"
            )
            return
        of_source = _SOURCE.fullmatch(query)
        if of_source is not None and end == "target":
            meant = f"{_name(of_source[1])}.target"
            self._errors.append(
                f"{name} is of a source, allowed is one for the whole query: set {meant}={text}"
            )
            return
        vertex = (query, "") if of_source is None else (of_source[1], of_source[2])
        self._ends.setdefault(vertex, {})[end] = bound

    def _unknown(self, name: str, query: str, end: str) -> None:
        known = {*_ENDS, *_SHARING}
        near = nearest(name.removeprefix(PREFIX))
        example = f"{PREFIX}{query or (end if end not in known else 'NAME')}.upperBound"
        example = example if near is None else f"{PREFIX}{near[0]}.{near[1]}"
        self._errors.append(f"{name} is not a setting, those of a query are {_ALLOWED}: set {example}")

    def together(self) -> tuple[QuerySettings, tuple[str, ...]]:
        """Return all settings found, and all errors, including contradictions."""
        bounds: dict[str, WantedBounds] = {}
        sources: dict[str, dict[str, WantedBounds]] = {}
        for (query, source), ends in self._ends.items():
            wanted = WantedBounds(**ends)
            if source:
                sources.setdefault(query, {})[source] = wanted
            else:
                bounds[query] = wanted
            if NO_BOUND < wanted.upper < wanted.lower:
                name = _name(query, source)
                self._errors.append(
                    f"{name}.lowerBound is '{wanted.lower}', allowed is at most the upper bound, "
                    f"'{wanted.upper}': set {name}.lowerBound={wanted.upper}"
                )
            elif (better := wanted.nearest_target()) is not None:
                self._errors.append(
                    f"{_name(query)}.target is '{wanted.target}', allowed is what its bounds allow: "
                    f"set {_name(query)}.target={better}"
                )
        self._errors += self._errors_of_own
        for query, own in self._own.items():
            self._errors += own.contradictions(prefix=f"{_name(query)}.")
        texts = {query: own.texts for query, own in self._own.items() if own.texts}
        return QuerySettings(bounds, sources, self._shares, texts), tuple(self._errors)


def _read_sharing(query: str, end: str, text: str) -> tuple[str, WantedSharing]:
    """Return the name of a query and the sharing set for it. Raises ValueError with what is wrong."""
    wanted = declared.read(end, text)
    if wanted is None:
        allowed, example = declared.what_is_allowed(end)
        raise ValueError(f"is '{text}', allowed is {allowed}: set it to {example}, or remove it")
    of_source = _SOURCE.fullmatch(query)
    if of_source is None:
        return query, wanted
    name, source = of_source[1], of_source[2]
    if wanted.group is None:
        raise ValueError(
            f"is of a source, allowed is one for the whole query: set {_name(name)}.{end}={text}"
        )
    return name, WantedSharing(groups={source: wanted.group})


def write(settings: QuerySettings) -> dict[str, str]:
    """Return the settings of queries as configuration entries; `read` reads them back."""
    named = [(_name(query), wanted) for query, wanted in settings.bounds.items()]
    for query, vertices in settings.source_bounds.items():
        named += ((_name(query, source), wanted) for source, wanted in vertices.items())
    written = {
        f"{name}.{end}": str(value)
        for name, wanted in named
        for end, value in (
            ("lowerBound", wanted.lower),
            ("upperBound", wanted.upper),
            ("target", wanted.target),
        )
        if value is not None
    }
    for query, share in settings.sharing.items():
        values = {"priority": share.priority, "weight": share.weight, "slotSharingGroup": share.group}
        written |= {f"{_name(query)}.{end}": _text(of) for end, of in values.items() if of is not None}
        for vertex, group in share.groups.items():
            written[f"{_name(query, vertex)}.slotSharingGroup"] = group
    for query, texts in settings.settings.items():
        written |= {f"{_name(query)}.{key}": text for key, text in texts.items()}
    return written


def _text(value: float | str) -> str:
    return f"{value:.9f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _name(query: str, source: str = "") -> str:
    return f"{PREFIX}{query}.{source}" if source else PREFIX + query


def _read(text: str) -> int | None:
    try:
        value = int(text)
    except ValueError:
        return None
    return value if value >= 1 or value == NO_BOUND else None
