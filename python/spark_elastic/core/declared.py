"""Bounds that somebody declares for a query: read, checked against its vertices, written back.

They come as a body of Flink's form, from whoever calls the REST API, or from the policy file:

    {"shuffle": {"parallelism": {"lowerBound": 1, "upperBound": 8}}}

-1 stands for no bound. It is replaced by the bound that it means before anything is checked, stored or
applied, so that what is in force can be read by whoever looks at it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from attrs import frozen

from spark_elastic.core.requirements import Bounds

NO_BOUND = -1
_LARGEST = 2**31 - 1
_LONGEST_TEXT = 60
_ALLOWED = "a whole number from 1 up, or -1 for no bound"

Code = Literal[
    # The bounds
    "not_positive",
    "lower_above_upper",
    "above_max_parallelism",
    "unknown_vertex",
    "missing_vertex",
    # The form of the body
    "empty_body",
    "wrong_type",
    "unknown_field",
    "missing_field",
]


@frozen(kw_only=True)
class WantedBounds:
    """A pair of bounds as it was written: anything may be in it, -1 means no bound."""

    lower: int = NO_BOUND
    upper: int = NO_BOUND


@frozen(kw_only=True)
class Problem:
    """One thing that is wrong: `where` is the vertex or the JSON path, `message` is for whoever wrote it."""

    code: Code
    where: str
    message: str


@frozen(kw_only=True)
class Declared:
    """Bounds that can be stored and applied, by vertex id."""

    vertices: Mapping[str, Bounds]


@frozen(kw_only=True)
class Refused:
    """Everything that is wrong with a declaration, in the order of the vertices; nothing of it is applied."""

    problems: tuple[Problem, ...]


def declare(known: Mapping[str, int], wanted: Mapping[str, WantedBounds]) -> Declared | Refused:
    """Check bounds for all vertices of a query; `known` has the max parallelism of each of its vertices."""
    vertices: dict[str, Bounds] = {}
    problems: list[Problem] = []
    for vertex, asked in wanted.items():
        if vertex not in known:
            problems.append(_unknown(vertex, known))
            continue
        lower = 1 if asked.lower == NO_BOUND else asked.lower
        upper = known[vertex] if asked.upper == NO_BOUND else asked.upper
        wrong = list(_check(vertex, lower, upper, known[vertex]))
        problems += wrong
        if not wrong:
            vertices[vertex] = Bounds(lower=lower, upper=upper)
    problems += (_missing(vertex) for vertex in known if vertex not in wanted)
    return Refused(problems=tuple(problems)) if problems else Declared(vertices=vertices)


def declare_some(
    known: Mapping[str, int], wanted: Mapping[str, WantedBounds], kept: Mapping[str, Bounds]
) -> Declared | Refused:
    """Check bounds for some vertices of a query; the others keep those of `kept`.

    This is for the policy file. A body has to name every vertex, as in Flink.
    """
    stays = {
        vertex: WantedBounds(lower=bounds.lower, upper=bounds.upper)
        for vertex, bounds in kept.items()
        if vertex in known
    }
    return declare(known, {**stays, **wanted})


def _check(vertex: str, lower: int, upper: int, maximum: int) -> Iterator[Problem]:
    for name, bound in (("lowerBound", lower), ("upperBound", upper)):
        if bound < 1:
            message = f"{name} of vertex {vertex} is {bound}, allowed is {_ALLOWED}: write 1"
            # Whatever else is wrong with this vertex would be noise.
            yield Problem(code="not_positive", where=vertex, message=message)
            return
    if lower > upper:
        message = (
            f"lowerBound of vertex {vertex} is {lower}, allowed is up to its upperBound, {upper}: "
            f"write {min(upper, maximum)} or less"
        )
        yield Problem(code="lower_above_upper", where=vertex, message=message)
    if upper > maximum:
        message = (
            f"upperBound of vertex {vertex} is {upper}, allowed is up to its max parallelism, {maximum}: "
            f"write {maximum}, or -1 for no bound"
        )
        yield Problem(code="above_max_parallelism", where=vertex, message=message)


def _unknown(vertex: str, known: Mapping[str, int]) -> Problem:
    allowed = ", ".join(known)
    message = f"{_shown(vertex)} is no vertex of this query, allowed is {allowed}: remove it"
    return Problem(code="unknown_vertex", where=vertex, message=message)


def _missing(vertex: str) -> Problem:
    message = (
        f"vertex {vertex} is not there, but every vertex has to be: "
        f'write "{vertex}": {{"parallelism": {{"lowerBound": -1, "upperBound": -1}}}} for no bounds'
    )
    return Problem(code="missing_vertex", where=vertex, message=message)


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
        bounds = _object(path, entry["parallelism"], problems, "lowerBound", "upperBound")
        if bounds is None:
            continue
        wanted[vertex] = WantedBounds(
            lower=_whole(_member(path, "lowerBound"), bounds.get("lowerBound", NO_BOUND), problems),
            upper=_whole(_member(path, "upperBound"), bounds.get("upperBound", NO_BOUND), problems),
        )
    return Refused(problems=tuple(problems)) if problems else wanted


def write_body(vertices: Mapping[str, Bounds | WantedBounds]) -> dict[str, Any]:
    """Write bounds as a body of Flink's form; `read_body` takes it back."""
    return {
        vertex: {"parallelism": {"lowerBound": bounds.lower, "upperBound": bounds.upper}}
        for vertex, bounds in vertices.items()
    }


def _object(path: str, value: object, problems: list[Problem], *fields: str) -> Mapping[str, Any] | None:
    """Return `value` if it is an object; with `fields`, those and no others have to be in it."""
    if not isinstance(value, Mapping):
        message = f"{path} is {_shown(value)}, allowed is an object: write {{…}}"
        problems.append(Problem(code="wrong_type", where=path, message=message))
        return None
    for name in value if fields else ():
        if name not in fields:
            where = _member(path, name)
            message = f"{where} is no field, allowed is {' and '.join(fields)}: remove it"
            problems.append(Problem(code="unknown_field", where=where, message=message))
    for name in fields:
        if name not in value:
            where = _member(path, name)
            wanted = '{"lowerBound": -1, "upperBound": -1}' if name == "parallelism" else "-1"
            message = f'{where} is not there, but has to be: write "{name}": {wanted} for no bound'
            problems.append(Problem(code="missing_field", where=where, message=message))
    return value


def _whole(path: str, value: object, problems: list[Problem]) -> int:
    """Return `value` if it is a whole number of 32 bits; True and False are none."""
    if type(value) is int and -_LARGEST <= value <= _LARGEST:
        return value
    message = f"{path} is {_shown(value)}, allowed is {_ALLOWED}: write -1"
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
    text = f"'{value}'" if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + "…"
