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

import re
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, field, frozen

from spark_elastic import query_keys
from spark_elastic.core.bounds import sharing
from spark_elastic.core.bounds.declared import NO_BOUND, WantedBounds
from spark_elastic.core.bounds.sharing import NOTHING_WANTED, WantedSharing
from spark_elastic.core.keys import PER_QUERY, key
from spark_elastic.core.keys.contradictions import contradictions
from spark_elastic.core.keys.key import Key
from spark_elastic.core.name_patterns import is_pattern
from spark_elastic.settings_errors import refused_value

PREFIX = f"{key.PREFIX}query."
EXAMPLES = ("query.NAME.lowerBound", "upperBound")
DOC = (
    "Fewest and most partitions of the query with this name (adaptive mode); -1: no bound. With `.source-0` "
    "after the name: fewest and most tasks that read its first source. The policy file counts more. In a "
    "name `*` stands for any text and `?` for one character, here and in the rows below."
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
    "state, under a query id of its own. A checkpoint with a micro-batch in it is gone on with instead. No "
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
_ALLOWED = f"lowerBound, upperBound, priority, weight, slotSharingGroup, savepoint, {query_keys.ALLOWED}"
_SOURCE = re.compile(r"(.+)\.(source-\d+)", re.ASCII)
_ENDS = {"lowerBound": "lower", "lower-bound": "lower", "upperBound": "upper", "upper-bound": "upper"}


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


def read(conf: Mapping[str, str]) -> tuple[QuerySettings, tuple[str, ...]]:
    """Return what is set for queries, and all that is wrong."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    shares: dict[str, WantedSharing] = {}
    own = _Own()
    errors: list[str] = []
    for name, text in sorted(conf.items()):
        if not is_one(name):
            continue
        if (divided := query_keys.split(name.removeprefix(PREFIX))) is not None:
            own.add(name, *divided, text.strip())
            continue
        query, _, end = name.removeprefix(PREFIX).rpartition(".")
        if query and end == _SAVEPOINT:
            if not text.strip():
                errors.append(f"{name} is empty, allowed is the folder of a savepoint: set it or remove it")
            elif is_pattern(query):
                errors.append(
                    f"{name} is for a pattern of names, allowed is one name, since a savepoint is of one "
                    f"query: set {PREFIX}NAME.{_SAVEPOINT}={text.strip()}"
                )
            continue
        if not query or (end not in _ENDS and end not in _SHARING):
            known = {*_ENDS, *_SHARING}
            near = query_keys.nearest(name.removeprefix(PREFIX))
            example = f"{PREFIX}{query or (end if end not in known else 'NAME')}.upperBound"
            example = example if near is None else f"{PREFIX}{near[0]}.{near[1]}"
            errors.append(f"{name} is no setting, those of a query are {_ALLOWED}: set {example}")
            continue
        if end in _SHARING:
            try:
                of_query, share = _read_sharing(query, _SHARING[end], text.strip())
                shares[of_query] = share.over(shares.get(of_query, NOTHING_WANTED))
            except ValueError as error:
                errors.append(f"{name} {error}")
            continue
        bound = _read(text.strip())
        if bound is None:
            errors.append(
                f"{name} is '{text}', allowed is a whole number from 1 up, or -1 for no bound: set {name}=1"
            )
            continue
        of_source = _SOURCE.fullmatch(query)
        vertex = (query, "") if of_source is None else (of_source[1], of_source[2])
        found.setdefault(vertex, {})[_ENDS[end]] = bound
    bounds: dict[str, WantedBounds] = {}
    sources: dict[str, dict[str, WantedBounds]] = {}
    for (query, source), values in found.items():
        wanted = WantedBounds(**values)
        if source:
            sources.setdefault(query, {})[source] = wanted
        else:
            bounds[query] = wanted
        if NO_BOUND < wanted.upper < wanted.lower:
            name = _name(query, source)
            errors.append(
                f"{name}.lowerBound is '{wanted.lower}', allowed is at most the upper bound, "
                f"'{wanted.upper}': set {name}.lowerBound={wanted.upper}"
            )
    errors += own.problems()
    return QuerySettings(bounds, sources, shares, own.texts), tuple(errors)


@define
class _Own:
    """The settings of queries that are found, as text by query and key; what is wrong is left out."""

    texts: dict[str, dict[str, str]] = field(factory=dict)
    errors: list[str] = field(factory=list)
    _typed: dict[tuple[str, str], tuple[str, str]] = field(factory=dict)

    def add(self, name: str, query: str, key: Key[Any], text: str) -> None:
        of_source = _SOURCE.fullmatch(query)
        if key.per_query is None:
            self.errors.append(
                f"{name} is for one query, allowed is {key.name} for the whole application only: "
                f"set {key.full_name}={text}"
            )
            return
        if of_source is not None:
            meant = f"{_name(of_source[1])}.{key.name}"
            self.errors.append(
                f"{name} is of a source, allowed is one for the whole query: set {meant}={text}"
            )
            return
        try:
            value = key.format(key.kind.parse(text))
        except (ValueError, KeyError):
            self.errors.append(refused_value(key, name, text, prefix=f"{_name(query)}."))
            return
        first, before = self._typed.setdefault((query, key.name), (name, text))
        if self.texts.setdefault(query, {}).setdefault(key.name, value) != value:
            self.errors.append(
                f"{first} is '{before}' and {name} is '{text}', but they are one setting: "
                f"keep only {_name(query)}.{key.name}={before}"
            )

    def problems(self) -> Sequence[str]:
        """Return all that is wrong, with what contradicts within one name."""
        for query, texts in self.texts.items():
            values = {PER_QUERY[name]: PER_QUERY[name].kind.parse(text) for name, text in texts.items()}
            self.errors += contradictions(values, prefix=f"{_name(query)}.")
        return self.errors


def _read_sharing(query: str, end: str, text: str) -> tuple[str, WantedSharing]:
    """Return the name of a query and what was set for it. Raises ValueError with what is wrong."""
    wanted = sharing.read(end, text)
    if wanted is None:
        allowed, example = sharing.what_is_allowed(end)
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
        for end, value in (("lowerBound", wanted.lower), ("upperBound", wanted.upper))
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
