"""What single queries can be given in the application's settings.

Bounds are ``spark.elastic.query.NAME.lowerBound`` and ``….upperBound``, of a source
``spark.elastic.query.NAME.source-0.lowerBound``. ``….priority``, ``….weight`` and ``….slotSharingGroup``
say how it shares slots with others, the last one of a source as well. ``….savepoint`` is a savepoint to
start from: it is only checked here, since the shim looks at it before the policy hears of the query.
Settings of the application that a query can have of its own stand there under their names, such as
``….restartStrategy.type``. The name is the query's own and may have dots and dashes in it, or a pattern of
names; only what follows it, and the vertex before that, is a key.
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

# The settings of single queries, wherever they are written: which there are, and what is said of others.


ALLOWED = (
    "schedulerMode, policy, explicitParallelism, stateStore, maxParallelism, adaptiveScheduler.…, "
    "schedule.…, autoscale.… and restartStrategy.…"
)
"""The settings that a query can have of its own, in short."""

_LIKE = 0.75

Wrong = Literal["of_application", "refused", "said_twice"]
"""What can be wrong with one: no query has it, its value cannot be read, or it has two values."""


@define
class OwnSettings:
    """The settings of one query as they are found, one by one: text by the name of the setting.

    `first` has where each was found, and as what. How something wrong is said is for whoever has found it.
    """

    texts: dict[str, str] = field(factory=dict, init=False)
    first: dict[str, tuple[str, str]] = field(factory=dict, init=False)

    def add(self, key: Key[Any], where: str, text: str | None) -> Wrong | None:
        """Take in one, None: no text at all. Return what is wrong with it; then it is left out."""
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
        """Say what contradicts each other; `prefix` comes before the name of each setting."""
        keys = ((PER_QUERY[name], text) for name, text in self.texts.items())
        return contradictions({key: key.kind.parse(text) for key, text in keys}, prefix=prefix)


def split(name: str) -> tuple[str, Key[Any]] | None:
    """Divide ``NAME.KEY`` where a setting of ours begins, the longest that there is; None if there is none.

    A query's name may have dots, and so has that of a setting.
    """
    parts = name.split(".")
    for start in range(1, len(parts)):
        key = called(".".join(parts[start:]))
        if key is not None and parts[0]:
            return ".".join(parts[:start]), key
    return None


def nearest(name: str) -> tuple[str, str] | None:
    """Divide ``NAME.KEY`` where a setting was probably meant; return the name and that of the setting."""
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
    "Fewest and most partitions of the query with this name (adaptive mode), and how many it is to have "
    "between them where no policy speaks: executors are requested for that many, and no query has more than "
    "its own before all have theirs. -1: no bound, no target. With `.source-0` after the name: fewest and "
    "most tasks that read its first source, which has no target. The policy file takes precedence. "
    "In a name `*` stands for any text and `?` for one character, in all settings of queries by name."
)
KEYS_EXAMPLE = "query.NAME.KEY"
KEYS_DOC = (
    "Any setting whose row says so in the column *Per query*, for the query with this name, such as "
    "`query.orders.restartStrategy.type`."
)
SHARING_DOCS = {
    "query.NAME.priority": (
        "int",
        "0",
        "Where there are too few slots for the lower bounds of all queries, those with a higher priority "
        "have theirs first, of equal ones the one that was submitted first (adaptive mode).",
    ),
    "query.NAME.weight": (
        "number above 0",
        "1",
        "Where there are too few slots for the upper bounds of all queries, those above the lower bounds are "
        "divided by weight (adaptive mode).",
    ),
    "query.NAME.slotSharingGroup": (
        "name",
        "none",
        "Queries of one group use the same slots: it needs what the widest needs, while groups add up "
        "(adaptive mode). With `.source-0` after the name: the group of its first source. None: a group of "
        "its own if anything is declared for the query, else `default`.",
    ),
}
SAVEPOINT_EXAMPLE = "query.NAME.savepoint"
SAVEPOINT_DOC = (
    "Savepoint (a folder) that the query with this name starts from if its checkpoint is new: offsets and "
    "state, under a query id of its own. A checkpoint with a micro-batch in it is resumed instead. No "
    "pattern of names."
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
    """What was set by the name of a query: bounds, those of sources by vertex as well, sharing, settings."""

    bounds: Bounds = field(factory=dict)
    source_bounds: Mapping[str, Bounds] = field(factory=dict)
    sharing: Mapping[str, WantedSharing] = field(factory=dict)
    settings: Mapping[str, Mapping[str, str]] = field(factory=dict)


def is_one(name: str) -> bool:
    """Say whether a setting is one of a query, or tries to be."""
    return name.startswith(PREFIX)


def is_bound(name: str) -> bool:
    """Say whether a setting is a bound of a query or one of its sources."""
    return is_one(name) and name.rpartition(".")[2] in _ENDS


def read(conf: Mapping[str, str]) -> tuple[QuerySettings, tuple[str, ...]]:
    """Return what is set for queries, and all that is wrong."""
    found = _Found()
    for name, text in sorted(conf.items()):
        if is_one(name):
            found.add(name, text.strip())
    return found.together()


@define
class _Found:
    """What is found name by name; what is wrong is left out, and said."""

    _ends: dict[tuple[str, str], dict[str, int]] = field(factory=dict)
    _shares: dict[str, WantedSharing] = field(factory=dict)
    _own: dict[str, OwnSettings] = field(factory=dict)
    _errors: list[str] = field(factory=list)
    _errors_of_own: list[str] = field(factory=list)

    def add(self, name: str, text: str) -> None:
        """Take in one setting."""
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
        self._errors.append(f"{name} is no setting, those of a query are {_ALLOWED}: set {example}")

    def together(self) -> tuple[QuerySettings, tuple[str, ...]]:
        """Return all that was found, and all that is wrong, with what does not go together."""
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
    """Return the name of a query and what was set for it. Raises ValueError with what is wrong."""
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
    """Write what is set for queries as settings; `read` reads them back."""
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
