"""The parallelism that a query may have.

A query is a set of vertices, each with a lower and an upper bound. Vertices of one slot-sharing group share
their slots, whichever query they belong to: the group needs what its widest vertex needs. Groups share
nothing, so their needs add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import field, frozen
from attrs.validators import ge, gt

MAX_PARALLELISM = 32_768
SHUFFLE = "shuffle"
"""The vertex of all stateful operators of a query, which share one partition count."""

DEFAULT_GROUP = "default"
"""The slot-sharing group of all queries for which nothing is declared."""

NO_PRIORITY = 0
NO_WEIGHT = 1.0


def source_vertex(number: int) -> str:
    """Return the name of the vertex of a source, by its position (from 0) in the query."""
    return f"source-{number}"


@frozen(kw_only=True)
class Bounds:
    """The range of a vertex's parallelism, and its target within it if nothing else decides.

    `target` is None for as much as it can use. Raises ValueError unless 1 <= lower <= target <= upper.
    """

    lower: int = field(default=1, validator=ge(1))
    upper: int = field(validator=ge(1))
    target: int | None = None

    def __attrs_post_init__(self) -> None:
        if self.lower > self.upper:
            raise ValueError(f"lower bound {self.lower} is above upper bound {self.upper}")
        if self.target is not None and not self.lower <= self.target <= self.upper:
            raise ValueError(f"target {self.target} is not within {self.lower} to {self.upper}")

    def holds(self, target: int | None) -> bool:
        """Return whether a target is within these bounds; None is no target."""
        return target is not None and self.lower <= target <= self.upper

    def at_most(self, most: int) -> Bounds:
        """Return the bounds with each value limited to `most`."""
        target = None if self.target is None else min(self.target, most)
        return Bounds(lower=min(self.lower, most), upper=min(self.upper, most), target=target)


@frozen(kw_only=True)
class Vertex:
    """One part of a query with a parallelism of its own, and the slot-sharing group that it is in.

    A vertex that does not demand slots uses those of the others in its group, up to its upper bound. With
    `granted` slots, it demands no more than these, although its upper bound is higher; no state is moved for
    them. With `least`, it demands at least that number, although its lower bound is lower; no slots are set
    aside for that. `weight` (above 0) counts if the slots do not suffice for all upper bounds.
    """

    id: str
    group: str
    bounds: Bounds
    demands: bool = True
    granted: int | None = None
    least: int | None = None
    weight: float = field(default=NO_WEIGHT, validator=gt(0))

    @property
    def demand(self) -> int:
        """The most slots that it can have."""
        if not self.demands:
            return self.bounds.lower
        if self.granted is None:
            return self.bounds.upper
        return max(self.bounds.lower, min(self.bounds.upper, self.granted))

    @property
    def target(self) -> int | None:
        """The slots that it should have before others get more than theirs; a policy's grant outranks it."""
        return self.bounds.target if self.demands and self.granted is None else None

    def parallelism(self, slots: int) -> int:
        """Return the parallelism that the vertex has with the slots of its group."""
        return min(self.bounds.upper, slots)


@frozen
class SlotGroup:
    """The slots that a slot-sharing group needs at least and can use at most, and its weight.

    `least` is the number of slots that it should have beyond those set aside for it. `target` is the number
    that it gets before any group gets more than its own target, 0 for none. `wanted` is the number to ask
    for: its target, or all that it can use. Each value is the largest of its vertices.
    """

    lower: int
    upper: int
    weight: float = NO_WEIGHT
    least: int = 0
    target: int = 0
    wanted: int = field()

    @wanted.default
    def _wanted(self) -> int:
        return self.target or self.upper

    @property
    def width(self) -> int:
        """The slots that it could use above its lower bound."""
        return self.upper - self.lower

    def joined(self, other: SlotGroup) -> SlotGroup:
        """Return the group with the vertices of both."""
        if (
            other.lower <= self.lower
            and other.upper <= self.upper
            and other.weight <= self.weight
            and other.least <= self.least
            and other.target <= self.target
            and other.wanted <= self.wanted
        ):
            return self  # most members of a group are alike
        return SlotGroup(
            lower=max(self.lower, other.lower),
            upper=max(self.upper, other.upper),
            weight=max(self.weight, other.weight),
            least=max(self.least, other.least),
            target=max(self.target, other.target),
            wanted=max(self.wanted, other.wanted),
        )


def add_groups(groups: dict[str, SlotGroup], more: Iterable[tuple[str, SlotGroup]]) -> int:
    """Merge groups into `groups`, by name. Return the number of additional slots that they need."""
    added = 0
    for name, wanted in more:
        known = groups.get(name)
        groups[name] = joined = wanted if known is None else known.joined(wanted)
        added += joined.lower - (0 if known is None else known.lower)
    return added


def slot_groups(vertices: Iterable[Vertex]) -> dict[str, SlotGroup]:
    """Return the groups of vertices, in the order in which they first appear."""
    groups: dict[str, SlotGroup] = {}
    for vertex in vertices:
        least, target = vertex.least or 0, vertex.target or 0
        needs = SlotGroup(vertex.bounds.lower, vertex.demand, vertex.weight, least, target)
        add_groups(groups, [(vertex.group, needs)])
    return groups


@frozen(kw_only=True)
class Requirements:
    """The vertices of one query, its shuffle first.

    `bound_by` names the setting that an upper bound comes from. `lower` and `upper` are the fewest and the
    most partitions that the query may run with, which are the bounds of its shuffle. `needed` is the number
    of slots for all of its lower bounds. `groups` are those of its vertices, with what these want of them. If
    queries need more slots than are available, those of a higher `priority` come first.
    """

    vertices: tuple[Vertex, ...]
    bound_by: str
    priority: int = NO_PRIORITY
    # Derived from `vertices` once, since each change of the executors asks every query for them.
    lower: int = field(init=False, eq=False)
    upper: int = field(init=False, eq=False)
    needed: int = field(init=False, eq=False)
    groups: Mapping[str, SlotGroup] = field(init=False, eq=False)

    @property
    def shuffle(self) -> Vertex:
        """The vertex of its stateful operators."""
        return self.vertices[0]

    @property
    def sources(self) -> tuple[Bounds, ...]:
        """The bounds of the sources, in their order."""
        return tuple(vertex.bounds for vertex in self.vertices[1:])

    @lower.default
    def _lower(self) -> int:
        return self.shuffle.bounds.lower

    @upper.default
    def _upper(self) -> int:
        return self.shuffle.bounds.upper

    @needed.default
    def _needed(self) -> int:
        return sum(group.lower for group in slot_groups(self.vertices).values())

    @groups.default
    def _groups(self) -> Mapping[str, SlotGroup]:
        return slot_groups(self.vertices)

    def validate(self) -> None:
        """Check the order of the vertices, and the derived values. Raises AssertionError."""
        assert [vertex.id == SHUFFLE for vertex in self.vertices] == [True] + [False] * len(self.sources)
        assert (self.lower, self.upper) == (self._lower(), self._upper())
        assert (self.needed, self.groups) == (self._needed(), self._groups())


def joined_groups(queries: Iterable[Requirements]) -> dict[str, SlotGroup]:
    """Return the groups of several queries; groups of one name become one."""
    groups: dict[str, SlotGroup] = {}
    for query in queries:
        add_groups(groups, query.groups.items())
    return groups


def needed_slots(queries: Iterable[Requirements], most: int) -> int:
    """Return the slots that queries call for together: targets, else upper bounds, else lower bounds.

    `most` is the parallelism that counts as no bound.
    """
    groups = joined_groups(queries).values()
    return sum(group.lower if group.wanted >= most else group.wanted for group in groups)
