"""How much parallelism a query may have.

A query is a set of vertices; each has a lower and an upper bound. Vertices of one group share their
slots.
"""

from __future__ import annotations

from attrs import field, frozen
from attrs.validators import ge

MAX_PARALLELISM = 32_768
_SMALLEST_DEFAULT_MAX = 128


def default_max_parallelism(parallelism: int) -> int:
    """Choose the highest parallelism for a vertex that was configured with `parallelism` and no maximum.

    It leaves room to grow by half, rounded up to a power of two, within 128 and 32768.
    """
    room = parallelism + parallelism // 2
    return min(max(1 << (room - 1).bit_length(), _SMALLEST_DEFAULT_MAX), MAX_PARALLELISM)


@frozen(kw_only=True)
class Bounds:
    """The range of a vertex' parallelism. Raises ValueError unless 1 <= lower <= upper."""

    lower: int = field(default=1, validator=ge(1))
    upper: int = field(validator=ge(1))

    def __attrs_post_init__(self) -> None:
        if self.lower > self.upper:
            raise ValueError(f"lower bound {self.lower} is above upper bound {self.upper}")


@frozen(kw_only=True)
class VertexParallelism:
    """What a vertex was configured with: `maximum` None means not configured."""

    parallelism: int = field(validator=ge(1))
    maximum: int | None = None

    @property
    def max_parallelism(self) -> int:
        """The configured maximum, or the default that follows from the configured parallelism."""
        return default_max_parallelism(self.parallelism) if self.maximum is None else self.maximum

    def reactive_bounds(self) -> Bounds:
        """Take all that is there: in reactive mode only the maximum limits a vertex."""
        return Bounds(lower=1, upper=self.max_parallelism)


@frozen(kw_only=True)
class Vertex:
    """One part of a query whose parallelism can be told apart, and the slot-sharing group it is in."""

    id: str
    group: str
    bounds: Bounds


@frozen(kw_only=True)
class Requirements:
    """The vertices of one query; `bound_by` names the setting that an upper bound comes from."""

    vertices: tuple[Vertex, ...]
    bound_by: str

    @property
    def lower(self) -> int:
        """The fewest partitions that a query may run with."""
        return max(vertex.bounds.lower for vertex in self.vertices)

    @property
    def upper(self) -> int:
        """The most partitions that a query may run with."""
        return max(vertex.bounds.upper for vertex in self.vertices)
