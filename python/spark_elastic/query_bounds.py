"""What single queries can be given in the application's settings.

Bounds are ``spark.elastic.query.NAME.lowerBound`` and ``….upperBound``. ``….savepoint`` is a savepoint to
start from: it is only checked here, since the shim looks at it before the policy hears of the query. The
name is the query's own and may have dots and dashes in it; only what follows its last dot is a key.
"""

from __future__ import annotations

from collections.abc import Mapping

from spark_elastic.core.declared import NO_BOUND, WantedBounds

PREFIX = "spark.elastic.query."
EXAMPLES = ("query.NAME.lowerBound", "upperBound")
DOC = (
    "Fewest and most partitions of the query with this name (adaptive mode); -1: no bound. The policy file "
    "counts more."
)
SAVEPOINT_EXAMPLE = "query.NAME.savepoint"
SAVEPOINT_DOC = (
    "Savepoint (a folder) that the query with this name starts from if its checkpoint is new: offsets and "
    "state, under a query id of its own. A checkpoint with a micro-batch in it is gone on with instead."
)
_SAVEPOINT = "savepoint"
_ENDS = {"lowerBound": "lower", "lower-bound": "lower", "upperBound": "upper", "upper-bound": "upper"}


def is_one(name: str) -> bool:
    """Say whether a setting is the bound of a query, or tries to be."""
    return name.startswith(PREFIX)


def read(conf: Mapping[str, str]) -> tuple[Mapping[str, WantedBounds], tuple[str, ...]]:
    """Return the bounds by query name, and all that is wrong with them."""
    found: dict[str, dict[str, int]] = {}
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
        found.setdefault(query, {})[_ENDS[end]] = bound
    bounds = {query: WantedBounds(**values) for query, values in found.items()}
    for query, wanted in bounds.items():
        if NO_BOUND < wanted.upper < wanted.lower:
            errors.append(
                f"{PREFIX}{query}.lowerBound is '{wanted.lower}', allowed is at most the upper bound, "
                f"'{wanted.upper}': set {PREFIX}{query}.lowerBound={wanted.upper}"
            )
    return bounds, tuple(errors)


def write(bounds: Mapping[str, WantedBounds]) -> dict[str, str]:
    """Write bounds as settings; `read` reads them back."""
    return {
        f"{PREFIX}{query}.{end}": str(value)
        for query, wanted in bounds.items()
        for end, value in (("lowerBound", wanted.lower), ("upperBound", wanted.upper))
    }


def _read(text: str) -> int | None:
    try:
        value = int(text)
    except ValueError:
        return None
    return value if value >= 1 or value == NO_BOUND else None
