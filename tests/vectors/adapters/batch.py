"""What the batch vectors have in common: inputs by their bytes, and the model's way to write ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spark_elastic.core.batch.all_to_all import Reads
from spark_elastic.core.batch.inputs import Input, input_of
from spark_elastic.core.batch.presets import FLINK
from spark_elastic.core.batch.spans import Block, Span
from spark_elastic.core.requirements import Bounds
from tests.vectors.adapters.fields import Fields

# The vectors are about the model's plain behaviour, so they are run with the rules of its preset.
PRESET = FLINK


def bounds_of(given: Fields) -> Bounds:
    return Bounds(lower=given["min"], upper=given["max"])


def input_from(given: Mapping[str, Any], **facts: Any) -> Input:
    """Make an input; what a vector does not say is as in a plain stage: keys of shuffles stay together."""
    pointwise = given.get("pointwise", facts.pop("pointwise", False))
    matrix = given.get("bytes_matrix") or [[given["bytes"]]]
    return input_of(
        matrix,
        broadcast=given.get("broadcast", False),
        pointwise=pointwise,
        single=given.get("single_subpartition_has_all", False),
        apart=not given.get("intra_input_key_correlated", not pointwise),
        joined=given.get("inter_input_key_correlated", not pointwise),
        side=given.get("type_number", 1),
        **facts,
    )


def inclusive(span: Span) -> list[int]:
    return [span[0], span[1] - 1]


def half_open(pair: Sequence[int]) -> Span:
    return pair[0], pair[1] + 1


def groups(reads: Reads) -> list[list[list[list[int]]]]:
    return [[[inclusive(span) for span in block] for block in sorted(blocks)] for blocks in reads]


def read_bytes(item: Input, blocks: Sequence[Block]) -> int:
    return sum(item.bytes_in(block) for block in blocks)
