"""Bounds as a body of Flink's form: read, and written.

{"shuffle": {"parallelism": {"lowerBound": 1, "upperBound": 8}}}

Beside the two there may be a `target`, which Flink has not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from spark_elastic.core.bounds.declared import ALLOWED, NO_BOUND, Problem, Refused, WantedBounds, shortened
from spark_elastic.core.bounds.requirements import Bounds

_LARGEST = 2**31 - 1
_TARGET = "target"


def read_body(body: object) -> Mapping[str, WantedBounds] | Refused:
    """Read a body of Flink's form, as parsed from JSON. Numbers are not looked at: see `declare`."""
    problems: list[Problem] = []
    wanted: dict[str, WantedBounds] = {}
    vertices = _object("$", body, problems)
    if vertices == {}:
        message = '$ is {}, allowed is one entry for each vertex: write {"shuffle": {"parallelism": …}}'
        problems.append(Problem(code="empty_body", where="$", message=message))
    for vertex, value in (vertices or {}).items():
        entry_path = _member("$", vertex)
        entry = _object(entry_path, value, problems, "parallelism")
        if entry is None or "parallelism" not in entry:
            continue
        path = _member(entry_path, "parallelism")
        bounds = _object(
            path, entry["parallelism"], problems, "lowerBound", "upperBound", optional=(_TARGET,)
        )
        if bounds is None:
            continue
        wanted[vertex] = WantedBounds(
            lower=_whole(_member(path, "lowerBound"), bounds.get("lowerBound", NO_BOUND), problems),
            upper=_whole(_member(path, "upperBound"), bounds.get("upperBound", NO_BOUND), problems),
            target=_whole(_member(path, _TARGET), bounds[_TARGET], problems) if _TARGET in bounds else None,
        )
    return Refused(problems=tuple(problems)) if problems else wanted


def write_body(vertices: Mapping[str, Bounds | WantedBounds]) -> dict[str, Any]:
    """Write bounds as a body of Flink's form; `read_body` takes it back."""
    return {vertex: {"parallelism": _parallelism(bounds)} for vertex, bounds in vertices.items()}


def _parallelism(bounds: Bounds | WantedBounds) -> dict[str, int]:
    both = {"lowerBound": bounds.lower, "upperBound": bounds.upper}
    return both if bounds.target is None else {**both, _TARGET: bounds.target}


def _object(
    path: str, value: object, problems: list[Problem], *fields: str, optional: tuple[str, ...] = ()
) -> Mapping[str, Any] | None:
    """Return `value` if it is an object; with `fields`, those have to be in it, others only if `optional`."""
    if not isinstance(value, Mapping):
        message = f"{path} is {_shown(value)}, allowed is an object: write {{…}}"
        problems.append(Problem(code="wrong_type", where=path, message=message))
        return None
    for name in value if fields else ():
        if name not in (*fields, *optional):
            where = _member(path, name)
            message = f"{where} is no field, allowed is {_listed(*fields, *optional)}: remove it"
            problems.append(Problem(code="unknown_field", where=where, message=message))
    for name in fields:
        if name not in value:
            where = _member(path, name)
            wanted = '{"lowerBound": -1, "upperBound": -1}' if name == "parallelism" else "-1"
            message = f'{where} is not there, but has to be: write "{name}": {wanted} for no bound'
            problems.append(Problem(code="missing_field", where=where, message=message))
    return value


def _listed(*names: str) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _whole(path: str, value: object, problems: list[Problem]) -> int:
    """Return `value` if it is a whole number of 32 bits; True and False are none."""
    if type(value) is int and -_LARGEST <= value <= _LARGEST:
        return value
    message = f"{path} is {_shown(value)}, allowed is {ALLOWED}: write -1"
    problems.append(Problem(code="wrong_type", where=path, message=message))
    return NO_BOUND


def _member(path: str, name: str) -> str:
    """Return the JSON path of a member of the object at `path`."""
    if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        return f"{path}.{name}"
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"{path}['{escaped}']"


def _shown(value: object) -> str:
    """Return what was found in the words of JSON, shortened."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return "an array"
    if type(value) is int and abs(value) > _LARGEST:
        return "a number of more than 32 bits"
    return shortened(value) if isinstance(value, str) else str(value)
