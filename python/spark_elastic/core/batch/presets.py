"""What the two presets decide differently: our own rules, and Flink's plain ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import frozen

MIB = 1 << 20
PresetName = Literal["elastic", "flink"]


@frozen(kw_only=True)
class Preset:
    """A set of rules.

    `volume` is the bytes that one task should read. `even_split`: what is split by count, because no limit
    gives an allowed number of ranges, gets the number of tasks that its bytes ask for, or the most that are
    allowed.
    `fills_waves`: the number of tasks goes by the slots as well. `writes_most`: as many partitions are
    written as tasks may ever read. `default_parallelism`: ``spark.default.parallelism`` is an upper bound
    where the application has set no number for shuffles, as ``parallelism.default`` is in Flink; Spark's own
    shuffles do not look at it, and platforms set it for RDDs. `max_parallelism` None: goes by the slots.
    """

    volume: int
    even_split: Literal["by_volume", "most"]
    fills_waves: bool
    writes_most: bool
    default_parallelism: bool
    max_parallelism: int | None


ELASTIC = Preset(
    volume=64 * MIB,
    even_split="by_volume",
    fills_waves=True,
    writes_most=False,
    default_parallelism=False,
    max_parallelism=None,
)

FLINK = Preset(
    volume=16 * MIB,
    even_split="most",
    fills_waves=False,
    writes_most=True,
    default_parallelism=True,
    max_parallelism=128,
)

PRESETS: Mapping[PresetName, Preset] = {"elastic": ELASTIC, "flink": FLINK}
