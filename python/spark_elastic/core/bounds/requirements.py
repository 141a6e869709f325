"""How much parallelism a query may have.

A query is a set of vertices; each has a lower and an upper bound. Vertices of one group share their
slots.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen
from attrs.validators import ge

MAX_PARALLELISM = 32_768
SHUFFLE = "shuffle"
"""The vertex of all stateful operators of a query, which share one partition count."""


def source_vertex(number: int) -> str:
    """Name the vertex of a source by its place (from 0) in the query."""
    return f"source-{number}"


@frozen(kw_only=True)
class Bounds:
    """The range of a vertex' parallelism. Raises ValueError unless 1 <= lower <= upper."""

    lower: int = field(default=1, validator=ge(1))
    upper: int = field(validator=ge(1))

    def __attrs_post_init__(self) -> None:
        if self.lower > self.upper:
            raise ValueError(f"lower bound {self.lower} is above upper bound {self.upper}")


@frozen(kw_only=True)
class Vertex:
    """One part of a query whose parallelism can be told apart, and the slot-sharing group it is in.

    One that does not demand slots uses those that the others of its group have, up to its upper bound.
    """

    id: str
    group: str
    bounds: Bounds
    demands: bool = True


def slot_groups(vertices: Sequence[Vertex]) -> dict[str, tuple[int, int]]:
    """Give each group the largest lower and the largest upper bound of its vertices."""
    groups: dict[str, tuple[int, int]] = {}
    for vertex in vertices:
        lower, upper = groups.get(vertex.group, (1, 1))
        wanted = vertex.bounds.upper if vertex.demands else vertex.bounds.lower
        groups[vertex.group] = (max(lower, vertex.bounds.lower), max(upper, wanted))
    return groups


def needed_slots(vertices: Sequence[Vertex]) -> int:
    """Count the slots without which not all lower bounds can be met."""
    return sum(lower for lower, _ in slot_groups(vertices).values())


def desired_slots(vertices: Sequence[Vertex]) -> int:
    """Count the slots beyond which no vertex could use more."""
    return sum(upper for _, upper in slot_groups(vertices).values())


@frozen(kw_only=True)
class Requirements:
    """The vertices of one query; `bound_by` names the setting that an upper bound comes from.

    `lower` and `upper` are the fewest and the most partitions that the query may run with, so the bounds of
    its shuffle; `needed` and `desired` are the slots for all of its lower and all of its upper bounds.
    """

    vertices: tuple[Vertex, ...]
    bound_by: str
    # Derived from `vertices`, once: each change of the executors asks every query for them.
    lower: int = field(init=False, eq=False)
    upper: int = field(init=False, eq=False)
    needed: int = field(init=False, eq=False)
    desired: int = field(init=False, eq=False)

    @property
    def _shuffle(self) -> Bounds:
        return next(vertex.bounds for vertex in self.vertices if vertex.id == SHUFFLE)

    @property
    def sources(self) -> tuple[Bounds, ...]:
        """The bounds of the sources, in their order."""
        return tuple(vertex.bounds for vertex in self.vertices if vertex.id != SHUFFLE)

    @lower.default
    def _lower(self) -> int:
        return self._shuffle.lower

    @upper.default
    def _upper(self) -> int:
        return self._shuffle.upper

    @needed.default
    def _needed(self) -> int:
        return needed_slots(self.vertices)

    @desired.default
    def _desired(self) -> int:
        return desired_slots(self.vertices)

    def validate(self) -> None:
        """Check that what is derived is right. Raises AssertionError."""
        assert (self.lower, self.upper) == (self._lower(), self._upper())
        assert (self.needed, self.desired) == (self._needed(), self._desired())
