"""Bounds that are declared for a query, checked against its vertices.

They come from a client of the REST API, or from the policy file. -1 stands for no bound. It is replaced by
the bound that it means before anything is checked, stored or applied, so that the bounds in force are visible
to every reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from attrs import field, frozen

from spark_elastic.core.bounds.requirements import DEFAULT_GROUP, NO_PRIORITY, NO_WEIGHT, SHUFFLE, Bounds
from spark_elastic.core.name_patterns import matching

NO_BOUND = -1
_LONGEST_TEXT = 60
ALLOWED = "a whole number from 1 up, or -1 for no bound"

Code = Literal[
    # The bounds
    "not_positive",
    "lower_above_upper",
    "above_max_parallelism",
    "target_outside",
    "target_of_source",
    "unknown_vertex",
    "missing_vertex",
    "vertex_said_twice",
    # The form of the body
    "empty_body",
    "wrong_type",
    "unknown_field",
    "missing_field",
]


@frozen(kw_only=True)
class WantedBounds:
    """Bounds as they were written, not checked; -1 means no bound, and `target` is None if not written."""

    lower: int = NO_BOUND
    upper: int = NO_BOUND
    target: int | None = None

    def nearest_target(self) -> int | None:
        """Return the nearest target that the bounds allow, None if they allow the present one."""
        if self.target is None or self.target == NO_BOUND:
            return None
        allowed = self.target if self.upper == NO_BOUND else min(self.target, self.upper)
        allowed = max(allowed, self.lower, 1)
        return None if allowed == self.target else allowed


@frozen(kw_only=True)
class Problem:
    """One thing that is wrong: `where` is the vertex or the JSON path, `message` is for the author."""

    code: Code
    where: str
    message: str


@frozen(kw_only=True)
class Accepted:
    """Bounds that can be stored and applied, by vertex id."""

    vertices: Mapping[str, Bounds]


@frozen(kw_only=True)
class Refused:
    """Everything that is wrong with a declaration, in the order of the vertices; none of it is applied."""

    problems: tuple[Problem, ...]


def declare(known: Mapping[str, int], wanted: Mapping[str, WantedBounds]) -> Accepted | Refused:
    """Check bounds for all vertices of a query; `known` has the max parallelism of each of its vertices."""
    vertices: dict[str, Bounds] = {}
    problems: list[Problem] = []
    for vertex, asked in wanted.items():
        if vertex not in known:
            problems.append(unknown_vertex(vertex, known))
            continue
        lower = 1 if asked.lower == NO_BOUND else asked.lower
        upper = known[vertex] if asked.upper == NO_BOUND else asked.upper
        target = None if asked.target == NO_BOUND else asked.target
        wrong = [*_check(vertex, lower, upper, known[vertex])] or [
            *_check_target(vertex, lower, upper, target)
        ]
        problems += wrong
        if not wrong:
            vertices[vertex] = Bounds(lower=lower, upper=upper, target=target)
    problems += (_missing(vertex) for vertex in known if vertex not in wanted)
    return Refused(problems=tuple(problems)) if problems else Accepted(vertices=vertices)


def declare_some(
    known: Mapping[str, int], wanted: Mapping[str, WantedBounds], kept: Mapping[str, Bounds]
) -> Accepted | Refused:
    """Check bounds for some vertices of a query; the others keep those of `kept`.

    This is for the policy file. A request body must name every vertex, as in Flink.
    """
    stays = {
        vertex: WantedBounds(lower=bounds.lower, upper=bounds.upper, target=bounds.target)
        for vertex, bounds in kept.items()
        if vertex in known
    }
    return declare(known, {**stays, **wanted})


def _check(vertex: str, lower: int, upper: int, maximum: int) -> Iterator[Problem]:
    for name, bound in (("lowerBound", lower), ("upperBound", upper)):
        if bound < 1:
            message = f"{name} of vertex {vertex} is {bound}, allowed is {ALLOWED}: write 1"
            # Any other problem of this vertex would be noise.
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


def _check_target(vertex: str, lower: int, upper: int, target: int | None) -> Iterator[Problem]:
    if target is None:
        return
    if vertex != SHUFFLE:
        message = f"target of vertex {vertex} is {target}, allowed is one for {SHUFFLE}: remove it"
        yield Problem(code="target_of_source", where=vertex, message=message)
    elif not lower <= target <= upper:
        message = (
            f"target of vertex {vertex} is {target}, allowed is from {lower} to {upper}, or -1 for none: "
            f"write {max(lower, min(target, upper))}"
        )
        yield Problem(code="target_outside", where=vertex, message=message)


def unknown_vertex(vertex: str, known: Mapping[str, int]) -> Problem:
    """Report that a query has no such vertex; `known` are those that it has."""
    allowed = ", ".join(known)
    message = f"{shortened(vertex)} is not a vertex of this query, allowed is {allowed}: remove it"
    return Problem(code="unknown_vertex", where=vertex, message=message)


def _missing(vertex: str) -> Problem:
    message = (
        f"vertex {vertex} is not there, but every vertex has to be: "
        f'write "{vertex}": {{"parallelism": {{"lowerBound": -1, "upperBound": -1}}}} for no bounds'
    )
    return Problem(code="missing_vertex", where=vertex, message=message)


def shortened(text: str) -> str:
    """Return a text that was found, in quotes, and truncated if it is long."""
    quoted = f"'{text}'"
    return quoted if len(quoted) <= _LONGEST_TEXT else quoted[:_LONGEST_TEXT] + "…"


# ---- How a query shares the slots with others: what was declared about that, and what follows from it.


@frozen(kw_only=True)
class WantedSharing:
    """What was written about one query, None for what was not.

    `group` is the slot-sharing group of its vertices, except for those in `groups`, which is by vertex id.
    """

    priority: int | None = None
    weight: float | None = None
    group: str | None = None
    groups: Mapping[str, str] = field(factory=dict)

    @property
    def says_something(self) -> bool:
        """Whether anything is written."""
        return self != NOTHING_WANTED

    def over(self, other: WantedSharing) -> WantedSharing:
        """Return these values, with those of `other` where they are not written."""
        return WantedSharing(
            priority=other.priority if self.priority is None else self.priority,
            weight=other.weight if self.weight is None else self.weight,
            group=other.group if self.group is None else self.group,
            groups={**other.groups, **self.groups},
        )


NOTHING_WANTED = WantedSharing()


def sharing_by_name(name: str | None, said: Mapping[str, WantedSharing]) -> WantedSharing:
    """Combine what is written by name or pattern for the query of this name."""
    wanted = NOTHING_WANTED
    for pattern in matching(name, said):
        wanted = said[pattern].over(wanted)
    return wanted


@frozen(kw_only=True)
class Sharing:
    """The sharing in force for one query; `group` is that of each vertex that is not in `groups`."""

    group: str
    groups: Mapping[str, str]
    priority: int
    weight: float

    def group_of(self, vertex: str) -> str:
        """Return the slot-sharing group of a vertex."""
        return self.groups.get(vertex, self.group)


def sharing(query: str, wanted: WantedSharing, *, bounded: bool) -> Sharing:
    """Return how a query shares slots; `bounded` says that bounds are declared for it.

    A query without declarations is in the default group, as all queries of plain Spark share all slots. A
    query with declarations has slots of its own, unless it names a group.
    """
    priority = NO_PRIORITY if wanted.priority is None else wanted.priority
    weight = NO_WEIGHT if wanted.weight is None else wanted.weight
    declared = bounded or (priority, weight) != (NO_PRIORITY, NO_WEIGHT)
    group = wanted.group or (query if declared else DEFAULT_GROUP)
    return Sharing(group=group, groups=wanted.groups, priority=priority, weight=weight)
