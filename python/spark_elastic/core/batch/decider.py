"""How many tasks a stage has, and what each of them reads of each input."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from spark_elastic.core.batch.all_to_all import Reads, read_apart, read_evenly, read_joined
from spark_elastic.core.batch.inputs import Input, bytes_of, share
from spark_elastic.core.batch.number import tasks_for
from spark_elastic.core.batch.pointwise import read_pointwise
from spark_elastic.core.batch.presets import Preset
from spark_elastic.core.batch.skew import Skew
from spark_elastic.core.batch.waves import Waves
from spark_elastic.core.requirements import Bounds


@frozen(kw_only=True)
class Plan:
    """The number of tasks, and for each input what each task reads."""

    parallelism: int
    reads: tuple[Reads, ...]


def number_of(inputs: Sequence[Input], volume: int, bounds: Bounds) -> int:
    """Decide on a number of tasks from the bytes of inputs that are no broadcast; without any, the least."""
    if all(item.broadcast for item in inputs):
        return bounds.lower
    return tasks_for(bytes_of(inputs, with_broadcast=False), volume, bounds)


def decide(
    inputs: Sequence[Input],
    volume: int,
    bounds: Bounds,
    *,
    preset: Preset,
    skew: Skew | None = None,
    waves: Waves | None = None,
    barriers: bool = False,
    decided: int | None = None,
) -> Plan:
    """Decide from the bytes of the inputs.

    The number that bytes and volume make (`decided`, if somebody has decided it already) is what a stage
    gets where sizes are of no help; else the number of tasks is the number of ranges. Raises ValueError if
    an input cannot be split into as many ranges as the bounds ask for.
    """
    number = decided or number_of(inputs, volume, bounds)
    whole = bytes_of(inputs, with_broadcast=preset.broadcast_has_share)
    pointwise = [item for item in inputs if item.pointwise]
    joined = [item for item in inputs if not item.pointwise and not item.broadcast and item.joined]
    if pointwise and any(not item.broadcast and not item.pointwise for item in inputs):
        bounds = Bounds(lower=number, upper=number)
    found: dict[int, Reads] = {}

    def note(items: Sequence[Input], reads: Sequence[Reads]) -> None:
        found.update((id(item), read) for item, read in zip(items, reads, strict=True))

    if pointwise:
        part = share(volume, bytes_of(pointwise, with_broadcast=True), whole)
        note(pointwise, read_pointwise(pointwise, part, bounds, decided=number, preset=preset))
        number = len(found[id(pointwise[0])])
        bounds = Bounds(lower=number, upper=number)
    if joined:
        part = share(volume, bytes_of(joined, with_broadcast=True), whole)
        reads = read_joined(
            joined, part, bounds, decided=number, preset=preset, skew=skew, waves=waves, barriers=barriers
        )
        note(joined, reads)
        number = len(reads[0])
    for item in inputs:
        if id(item) not in found:
            part = share(volume, item.produced, whole)
            apart = read_evenly(item, number) if item.broadcast else read_apart(item, part, number, preset)
            found[id(item)] = apart
    return Plan(parallelism=number, reads=tuple(found[id(item)] for item in inputs))
