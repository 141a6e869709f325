"""Inputs of which every task reads some subpartitions of all partitions: shuffles, and broadcasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count, product

from attrs import frozen

from spark_elastic.core.batch.balance import balance
from spark_elastic.core.batch.even import split_broadcast, split_evenly
from spark_elastic.core.batch.inputs import Input, added
from spark_elastic.core.batch.presets import Preset
from spark_elastic.core.batch.skew import Skew, pieces, target, threshold
from spark_elastic.core.batch.slices import Part, Slices
from spark_elastic.core.batch.spans import Block, Span, clip, gather
from spark_elastic.core.batch.waves import Waves
from spark_elastic.core.requirements import Bounds

Reads = list[list[Block]]
"""What each task reads of one input."""


@frozen(kw_only=True)
class Side:
    """The inputs of one side, added up: bytes by subpartition, and the pieces of those that are split."""

    number: int
    partitions: int
    columns: Sequence[int]
    cuts: Mapping[int, list[tuple[Span, int]]]

    def pieces(self, subpartition: int) -> list[tuple[Span, int]]:
        """Return the pieces of a subpartition as spans of partitions and their bytes."""
        whole = [((0, self.partitions), self.columns[subpartition])]
        return self.cuts.get(subpartition, whole)


def side_of(number: int, inputs: Sequence[Input], volume: int, skew: Skew | None) -> Side:
    """Add up the inputs of one side, and split what is skewed if its rows need not stay together."""
    partitions = max(item.partitions for item in inputs)
    columns = added([item.columns for item in inputs])
    cuts: dict[int, list[tuple[Span, int]]] = {}
    if skew is not None and all(item.apart and item.partitions == partitions for item in inputs):
        above = threshold(columns, skew)
        size = target(columns, above, volume)
        for number_of, column in enumerate(columns):
            if column <= above or not all(number_of in item.rows for item in inputs):
                continue
            rows = added([item.rows[number_of] for item in inputs])
            cut = pieces(rows, size)
            if len(cut) > 1:
                cuts[number_of] = [(span, sum(rows[slice(*span)])) for span in cut]
    return Side(number=number, partitions=partitions, columns=columns, cuts=cuts)


@frozen(kw_only=True)
class Row:
    """The slices of several sides; `split` has the partitions read by side, for slices that are pieces."""

    slices: Slices
    origin: Sequence[int]
    split: Mapping[int, tuple[Span, ...]]


def row_of(sides: Sequence[Side], *, barriers: bool) -> Row:
    """Line up the subpartitions; one that is split becomes a slice for each pair of pieces of its sides.

    `barriers`: no task reads anything besides pieces of one subpartition that make up a block.
    """
    weights = added([side.columns for side in sides])
    skewed = sorted({subpartition for side in sides for subpartition in side.cuts})
    if not skewed:
        return Row(slices=Slices(weights=weights), origin=range(len(weights)), split={})
    sizes: list[int] = []
    origin: list[int] = []
    parts: dict[int, tuple[Part, ...]] = {}
    split: dict[int, tuple[Span, ...]] = {}
    breaks: list[int] = []
    numbers = count()
    position = 0
    for subpartition in skewed:
        sizes += weights[position:subpartition]
        origin += range(position, subpartition)
        position = subpartition + 1
        options = [[(next(numbers), *piece) for piece in side.pieces(subpartition)] for side in sides]
        # Pieces of the last side that is split follow each other: a block has some of them, and no other.
        width = next(len(option) for option in reversed(options) if len(option) > 1)
        for number, pair in enumerate(product(*options)):
            if number % width == 0:
                breaks.append(len(sizes))
            split[len(sizes)] = tuple(span for _, span, _ in pair)
            parts[len(sizes)] = tuple((key, size) for key, _, size in pair)
            sizes.append(sum(size for _, _, size in pair))
            origin.append(subpartition)
        breaks.append(len(sizes))
    sizes += weights[position:]
    origin += range(position, len(weights))
    kept = [place for place in breaks if place < len(sizes)] if barriers else []
    return Row(slices=Slices(weights=sizes, parts=parts, breaks=kept), origin=origin, split=split)


def read_joined(
    inputs: Sequence[Input],
    volume: int,
    bounds: Bounds,
    *,
    decided: int,
    preset: Preset,
    skew: Skew | None,
    waves: Waves | None = None,
    barriers: bool = False,
) -> list[Reads]:
    """Split inputs whose subpartitions go together, all at the same places. Returns what is read, by input.

    Raises ValueError if they cannot be split into as many ranges as the bounds ask for.
    """
    numbers = sorted({item.side for item in inputs})
    sides = [
        side_of(number, [item for item in inputs if item.side == number], volume, skew) for number in numbers
    ]
    row = row_of(sides, barriers=barriers)
    ranges = balance(row.slices, volume, bounds, decided=decided, preset=preset, waves=waves)
    if ranges is None and row.split and barriers:
        return read_joined(
            inputs, volume, bounds, decided=decided, preset=preset, skew=None, waves=waves, barriers=True
        )
    if ranges is None:
        return [read_evenly(item, decided) for item in inputs]
    if not row.split:
        # One list for all inputs of as many partitions: most have exactly the same ranges.
        alike = {item.partitions: [[Block((0, item.partitions), span)] for span in ranges] for item in inputs}
        return [alike[item.partitions] for item in inputs]
    place = {side.number: number for number, side in enumerate(sides)}
    return [[_blocks(item, row, place[item.side], span) for span in ranges] for item in inputs]


def _blocks(item: Input, row: Row, side: int, span: Span) -> list[Block]:
    whole = (0, item.partitions)
    if row.split.keys().isdisjoint(range(*span)):
        return [Block(whole, (row.origin[span[0]], row.origin[span[1] - 1] + 1))]
    cells: list[tuple[Span, Span]] = []
    for position in range(*span):
        subpartition = row.origin[position]
        partitions = row.split[position][side] if position in row.split else whole
        cells.append(((subpartition, subpartition + 1), clip(partitions, item.partitions)))
    return _turned(cells)


def _turned(cells: Sequence[tuple[Span, Span]]) -> list[Block]:
    """Gather cells, each a span of subpartitions and one of partitions."""
    joined = cells if len(cells) == 1 else gather(cells)
    return [Block(partitions, subpartitions) for subpartitions, partitions in joined]


def read_apart(item: Input, volume: int, tasks: int, preset: Preset) -> Reads:
    """Split one input into a number of ranges that is decided already."""
    bounds = Bounds(lower=tasks, upper=tasks)
    if not item.apart:
        cut = balance(Slices(weights=item.columns), volume, bounds, decided=tasks, preset=preset)
        return read_evenly(item, tasks) if cut is None else [[Block((0, item.partitions), s)] for s in cut]
    width = len(item.columns)
    cells = [
        item.rows[subpartition][partition]
        for partition in range(item.partitions)
        for subpartition in range(width)
    ]
    cut = balance(Slices(weights=cells), volume, bounds, decided=tasks, preset=preset)
    if cut is None:
        return read_evenly(item, tasks)
    return [_turned([_cell(position, width) for position in range(*span)]) for span in cut]


def _cell(position: int, width: int) -> tuple[Span, Span]:
    partition, subpartition = divmod(position, width)
    return (subpartition, subpartition + 1), (partition, partition + 1)


def read_evenly(item: Input, tasks: int) -> Reads:
    """Split an input by count. Raises ValueError if it has fewer subpartitions than there are tasks."""
    if item.broadcast:
        return split_broadcast(item.partitions, len(item.columns), tasks, single=item.single)
    return [[Block((0, item.partitions), span)] for span in split_evenly(len(item.columns), tasks)]
