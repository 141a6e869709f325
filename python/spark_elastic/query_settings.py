"""Settings for single queries, given among the application's settings as ``spark.elastic.query.NAME.KEY``.

KEY is one that only a query can have (`core/keys/queries.py`), such as ``lowerBound`` or ``savepoint``, or a
setting of the application that a query can override, such as ``restartStrategy.type``. Bounds and the
slot-sharing group can also be those of a source: ``spark.elastic.query.NAME.source-0.lowerBound``. NAME is
the query's own name, which may contain dots and dashes, or a pattern of names. A savepoint is only checked
here, because the shim reads it before the policy learns of the query.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from attrs import define, field, frozen

from spark_elastic.core.bounds.declared import NO_BOUND, NOTHING_WANTED, WantedBounds, WantedSharing
from spark_elastic.core.keys import OF_QUERY, PER_QUERY, called_for_query, key, queries
from spark_elastic.core.keys.key import Key
from spark_elastic.core.name_patterns import is_pattern
from spark_elastic.core.settings import contradictions
from spark_elastic.settings_errors import refused_value

PREFIX = f"{key.PREFIX}query."
KEYS_EXAMPLE = "query.NAME.KEY"
KEYS_DOC = (
    "Any setting marked in the column *Per query*, for the query with this name, such as "
    "`query.orders.restartStrategy.type`."
)

_ALLOWED = (
    f"{', '.join(OF_QUERY)}, schedulerMode, policy, explicitParallelism, stateStore, maxParallelism, "
    "adaptiveScheduler.…, schedule.…, autoscale.… and restartStrategy.…"
)
_SOURCE = re.compile(r"(.+)\.(source-\d+)", re.ASCII)
_LIKE = 0.75

Bounds = Mapping[str, WantedBounds]
Wrong = Literal["of_application", "refused", "said_twice"]
"""What can be wrong with a setting: a query cannot have it, its value is invalid, or it has two values."""


@define
class OwnSettings:
    """The settings of one query or source, collected one by one: values by key.

    `first` has the place where each setting was first found, and its text there. The caller words the errors.
    """

    values: dict[Key[Any], Any] = field(factory=dict, init=False)
    first: dict[Key[Any], tuple[str, str]] = field(factory=dict, init=False)

    def add(self, key: Key[Any], where: str, text: str | None) -> Wrong | None:
        """Add a setting, with `text` None if it has none; return what is wrong with it, if anything."""
        if key.per_query is None:
            return "of_application"
        if text is None:
            return "refused"
        try:
            value = key.kind.parse(text)
        except (ValueError, KeyError):
            return "refused"
        self.first.setdefault(key, (where, text))
        return None if self.values.setdefault(key, value) == value else "said_twice"

    @property
    def texts(self) -> dict[str, str]:
        """The overridden settings of the application, as text by name."""
        return {key.name: key.format(value) for key, value in self.values.items() if key.name in PER_QUERY}

    @property
    def has_bounds(self) -> bool:
        """Whether there is a bound or a target."""
        return any(key in self.values for key in queries.BOUNDS)

    def bounds(self, usual: WantedBounds) -> WantedBounds:
        """Return the bounds, each that was not given from `usual`."""
        return WantedBounds(
            lower=self.values.get(queries.LOWER, usual.lower),
            upper=self.values.get(queries.UPPER, usual.upper),
            target=self.values.get(queries.TARGET, usual.target),
        )

    @property
    def sharing(self) -> WantedSharing:
        """How the query shares slots."""
        return WantedSharing(
            priority=self.values.get(queries.PRIORITY),
            weight=self.values.get(queries.WEIGHT),
            group=self.values.get(queries.SLOT_SHARING_GROUP),
        )

    def contradictions(self, prefix: str) -> list[str]:
        """Return the contradictions between settings; `prefix` comes before the name of each setting."""
        return contradictions(self.values, prefix=prefix)


def split(name: str) -> tuple[str, Key[Any]] | None:
    """Split ``NAME.KEY`` at the longest known setting name; return None if there is none.

    Both the name of a query and that of a setting may contain dots.
    """
    parts = name.split(".")
    for start in range(1, len(parts)):
        key = called_for_query(".".join(parts[start:]))
        if key is not None and parts[0]:
            return ".".join(parts[:start]), key
    return None


def _nearest(name: str) -> tuple[str, str] | None:
    """Split ``NAME.KEY`` at the setting probably meant; return the query's name and the setting's name."""
    parts = name.split(".")
    guesses = (
        (difflib.SequenceMatcher(None, ".".join(parts[start:]).lower(), key.lower()).ratio(), start, key)
        for start in range(1, len(parts))
        for key in (*PER_QUERY, *OF_QUERY)
    )
    best = max(guesses, default=None)
    if best is None or best[0] < _LIKE:
        return None
    return ".".join(parts[: best[1]]), best[2]


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


def read(conf: Mapping[str, str]) -> tuple[QuerySettings, tuple[str, ...]]:
    """Return the settings of queries, and all errors."""
    found = _Found()
    for name, text in sorted(conf.items()):
        if is_one(name):
            found.errors += found.add(name, text.strip())
    found.errors += found.contradictions()
    return found.together(), tuple(found.errors)


@define
class _Found:
    """Collects settings name by name, by query and source ("" for the query); wrong ones are skipped."""

    errors: list[str] = field(factory=list)
    _own: dict[tuple[str, str], OwnSettings] = field(factory=dict)

    def add(self, name: str, text: str) -> Iterator[str]:
        """Add a setting, and return the errors."""
        rest = name.removeprefix(PREFIX)
        divided = split(rest)
        if divided is None:
            yield _unknown(name, rest)
            return
        query, key = divided
        of_source = _SOURCE.fullmatch(query)
        if of_source is not None and key.per_query is not None and key not in queries.OF_SOURCE:
            meant = f"{_name(of_source[1])}.{key.name}"
            yield f"{name} is of a source, allowed is one for the whole query: set {meant}={text}"
            return
        if key is queries.SAVEPOINT and is_pattern(query):
            yield (
                f"{name} is for a pattern of names, allowed is one name, since a savepoint is of one "
                f"query: set {PREFIX}NAME.{key.name}={text}"
            )
            return
        vertex = (query, "") if of_source is None else (of_source[1], of_source[2])
        own = self._own.setdefault(vertex, OwnSettings())
        match own.add(key, name, text):
            case "of_application":
                yield (
                    f"{name} is for one query, allowed is {key.name} for the whole application only: "
                    f"set {key.full_name}={text}"
                )
            case "refused":
                yield refused_value(key, name, text, prefix=f"{_name(query)}.")
            case "said_twice":
                first, before = own.first[key]
                yield (
                    f"{first} is '{before}' and {name} is '{text}', but they are one setting: "
                    f"keep only {_name(query)}.{key.name}={before}"
                )

    def contradictions(self) -> Iterator[str]:
        """Return the errors about values that contradict each other."""
        for (query, source), own in self._own.items():
            name = _name(query, source)
            wanted = own.bounds(WantedBounds())
            if NO_BOUND < wanted.upper < wanted.lower:
                yield (
                    f"{name}.lowerBound is '{wanted.lower}', allowed is at most the upper bound, "
                    f"'{wanted.upper}': set {name}.lowerBound={wanted.upper}"
                )
            elif (better := wanted.nearest_target()) is not None:
                yield (
                    f"{name}.target is '{wanted.target}', allowed is what its bounds allow: "
                    f"set {name}.target={better}"
                )
            yield from own.contradictions(prefix=f"{name}.")

    def together(self) -> QuerySettings:
        """Return all settings found."""
        bounds: dict[str, WantedBounds] = {}
        sources: dict[str, dict[str, WantedBounds]] = {}
        sharing: dict[str, WantedSharing] = {}
        texts: dict[str, dict[str, str]] = {}
        for (query, source), own in self._own.items():
            if own.has_bounds:
                (sources.setdefault(query, {}) if source else bounds)[source or query] = own.bounds(
                    WantedBounds()
                )
            share = own.sharing
            if share.group is not None and source:
                share = WantedSharing(groups={source: share.group})
            if share.says_something:
                sharing[query] = share.over(sharing.get(query, NOTHING_WANTED))
            if said := own.texts:
                texts[query] = said
        return QuerySettings(bounds, sources, sharing, texts)


def _unknown(name: str, rest: str) -> str:
    near = _nearest(rest)
    query, _, end = rest.rpartition(".")
    example = f"{query or ('NAME' if called_for_query(end) else end)}.{queries.UPPER.name}"
    example = example if near is None else f"{near[0]}.{near[1]}"
    return f"{name} is not a setting, those of a query are {_ALLOWED}: set {PREFIX}{example}"


def write(settings: QuerySettings) -> dict[str, str]:
    """Return the settings of queries as configuration entries; `read` reads them back."""
    named: list[tuple[str, Mapping[Key[Any], Any]]] = [
        (_name(query), _bounds_by_key(wanted)) for query, wanted in settings.bounds.items()
    ]
    for query, vertices in settings.source_bounds.items():
        named += ((_name(query, source), _bounds_by_key(wanted)) for source, wanted in vertices.items())
    for query, share in settings.sharing.items():
        of_query = {
            queries.PRIORITY: share.priority,
            queries.WEIGHT: share.weight,
            queries.SLOT_SHARING_GROUP: share.group,
        }
        named.append((_name(query), of_query))
        named += (
            (_name(query, source), {queries.SLOT_SHARING_GROUP: group})
            for source, group in share.groups.items()
        )
    written = {
        f"{name}.{key.name}": key.format(value)
        for name, values in named
        for key, value in values.items()
        if value is not None
    }
    for query, texts in settings.settings.items():
        written |= {f"{_name(query)}.{name}": text for name, text in texts.items()}
    return written


def _bounds_by_key(wanted: WantedBounds) -> dict[Key[Any], Any]:
    return dict(zip(queries.BOUNDS, (wanted.lower, wanted.upper, wanted.target), strict=True))


def _name(query: str, source: str = "") -> str:
    return f"{PREFIX}{query}.{source}" if source else PREFIX + query
