"""What a stage reads: the bytes of each input, by partition of its producer and by subpartition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add

from attrs import field, frozen

from spark_elastic.core.batch.spans import Block


@frozen(kw_only=True)
class Input:
    """One input. A shuffle's map tasks are its partitions, its reduce partitions its subpartitions.

    `columns` has the bytes of each subpartition, `rows` those of its parts, one for each partition, as far as
    they are known. `broadcast`: every task reads all of it; `single`: one subpartition holds it all.
    `side` numbers the inputs whose bytes are added up, those on one side of a join. `apart`: the rows of a
    subpartition need not stay together. `joined`: its subpartitions go with those of the other joined inputs.
    """

    columns: Sequence[int]
    partitions: int = 1
    rows: Mapping[int, Sequence[int]] = field(factory=dict)
    broadcast: bool = False
    pointwise: bool = False
    single: bool = False
    side: int = 1
    apart: bool = False
    joined: bool = True

    @property
    def produced(self) -> int:
        """The bytes that were produced; a broadcast that one subpartition holds counts once."""
        return self.columns[0] if self.broadcast and self.single else sum(self.columns)

    def bytes_in(self, block: Block) -> int:
        """Count the bytes of a block."""
        (first, end), (low, high) = block
        if (first, end) == (0, self.partitions):
            return sum(self.columns[low:high])
        return sum(sum(self.rows[subpartition][first:end]) for subpartition in range(low, high))


def input_of(matrix: Sequence[Sequence[int]], **facts: object) -> Input:
    """Make an input of all its bytes, `matrix[partition][subpartition]`."""
    columns = list(zip(*matrix, strict=True))
    return Input(
        columns=[sum(column) for column in columns],
        partitions=len(matrix),
        rows=dict(enumerate(columns)),
        **facts,  # type: ignore[arg-type]  # attrs refuses what it does not know
    )


def added(columns: Sequence[Sequence[int]]) -> Sequence[int]:
    """Add up columns of the same length."""
    return reduce(lambda one, other: list(map(add, one, other)), columns)


def share(volume: int, part: int, whole: int) -> int:
    """Give a group of inputs its share of a task's volume, in proportion to its bytes."""
    return int(part / whole * volume) if whole else 0


def bytes_of(inputs: Iterable[Input], *, with_broadcast: bool) -> int:
    """Count the bytes of several inputs."""
    return sum(item.produced for item in inputs if with_broadcast or not item.broadcast)
