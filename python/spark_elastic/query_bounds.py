"""What single queries can be given in the application's settings.

Bounds are ``spark.elastic.query.NAME.lowerBound`` and ``….upperBound``, of a source
``spark.elastic.query.NAME.source-0.lowerBound``. ``….savepoint`` is a savepoint to start from: it is only
checked here, since the shim looks at it before the policy hears of the query. The name is the query's own
and may have dots and dashes in it; only what follows its last dot, and the vertex before it, is a key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from spark_elastic.core.bounds.declared import NO_BOUND, WantedBounds
from spark_elastic.core.keys import key

PREFIX = f"{key.PREFIX}query."
EXAMPLES = ("query.NAME.lowerBound", "upperBound")
DOC = (
    "Fewest and most partitions of the query with this name (adaptive mode); -1: no bound. With `.source-0` "
    "after the name: fewest and most tasks that read its first source. The policy file counts more."
)
SAVEPOINT_EXAMPLE = "query.NAME.savepoint"
SAVEPOINT_DOC = (
    "Savepoint (a folder) that the query with this name starts from if its checkpoint is new: offsets and "
    "state, under a query id of its own. A checkpoint with a micro-batch in it is gone on with instead."
)
Bounds = Mapping[str, WantedBounds]

_SAVEPOINT = "savepoint"
_SOURCE = re.compile(r"(.+)\.(source-\d+)", re.ASCII)
_ENDS = {"lowerBound": "lower", "lower-bound": "lower", "upperBound": "upper", "upper-bound": "upper"}


def is_one(name: str) -> bool:
    """Say whether a setting is the bound of a query, or tries to be."""
    return name.startswith(PREFIX)


def read(conf: Mapping[str, str]) -> tuple[Bounds, Mapping[str, Bounds], tuple[str, ...]]:
    """Return the bounds by query name, those of sources by query name and vertex, and all that is wrong."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    errors: list[str] = []
    for name, text in sorted(conf.items()):
        if not is_one(name):
            continue
        query, _, end = name.removeprefix(PREFIX).rpartition(".")
        if query and end == _SAVEPOINT:
            if not text.strip():
                errors.append(f"{name} is empty, allowed is the folder of a savepoint: set it or remove it")
            continue
        if not query or end not in _ENDS:
            example = f"{PREFIX}{query or (end if end not in _ENDS else 'NAME')}.upperBound"
            errors.append(
                f"{name} is no setting, those of a query are lowerBound, upperBound and savepoint: "
                f"set {example}"
            )
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
    return bounds, sources, tuple(errors)


def write(bounds: Bounds, sources: Mapping[str, Bounds]) -> dict[str, str]:
    """Write bounds as settings; `read` reads them back."""
    named = [(_name(query), wanted) for query, wanted in bounds.items()]
    for query, vertices in sources.items():
        named += ((_name(query, source), wanted) for source, wanted in vertices.items())
    return {
        f"{name}.{end}": str(value)
        for name, wanted in named
        for end, value in (("lowerBound", wanted.lower), ("upperBound", wanted.upper))
    }


def _name(query: str, source: str = "") -> str:
    return f"{PREFIX}{query}.{source}" if source else PREFIX + query


def _read(text: str) -> int | None:
    try:
        value = int(text)
    except ValueError:
        return None
    return value if value >= 1 or value == NO_BOUND else None
