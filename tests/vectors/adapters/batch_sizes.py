"""What producers write, how it is counted, and which of it is skewed."""

from __future__ import annotations

from typing import Any

from spark_elastic.core.batch.all_to_all import side_of
from spark_elastic.core.batch.inputs import input_of
from spark_elastic.core.batch.skew import Skew, median, target, threshold
from spark_elastic.core.batch.spans import Block, clip, merge
from spark_elastic.core.batch.written import Pattern, subpartitions_written
from tests.vectors.adapters.batch import half_open, inclusive
from tests.vectors.adapters.fields import Fields


def subpartition_count(given: Fields) -> Fields:
    if "ranges" in given:
        return {"merged": [inclusive(span) for span in merge(map(half_open, given["ranges"]))]}
    if "slice_partition_range" in given:
        return {"range": inclusive(clip(half_open(given["slice_partition_range"]), given["partitions"]))}
    if "bytes_matrix" in given:
        return counted(given)
    return {"subpartitions": written(given)}


def written(given: Fields) -> list[int]:
    pattern: Pattern = "pointwise" if given["pattern"] == "POINTWISE" else "all_to_all"
    tasks = None if given["consumer_parallelism"] == -1 else given["consumer_parallelism"]
    return subpartitions_written(
        given["producers"],
        pattern,
        tasks=tasks,
        most=given["consumer_max"],
        fixed=not given["dynamic"],
        one_for_all=given.get("broadcast", False) or given.get("forward", False),
    )


def counted(given: Fields) -> Fields:
    item = input_of(
        given["bytes_matrix"],
        broadcast=given.get("broadcast", False),
        single=given.get("single_subpartition_has_all", False),
    )
    if "partitions" in given:
        block = Block(half_open(given["partitions"]), half_open(given["subpartitions"]))
        return {"bytes": item.bytes_in(block)}
    return {"bytes": item.produced, "per_subpartition": list(item.columns)}


def skew_thresholds(given: Fields) -> Fields:
    if "values" in given:
        return {"median": median(given["values"])}
    if "subpartition_bytes" in given:
        return {"target": target(given["subpartition_bytes"], given["threshold"], given["bytes_per_task"])}
    skew = Skew(factor=given["skewed_factor"], threshold=given["skewed_threshold"])
    inputs = [input_of([given["row"]] * given["partitions"], apart=True) for _ in range(given["inputs"])]
    sizes = side_of(1, inputs, given["bytes_per_task"], skew).columns
    above = threshold(sizes, skew)
    result: dict[str, Any] = {"aggregated": list(sizes), "threshold": above}
    result["skewed"] = [size > above for size in sizes]
    result["target"] = target(sizes, above, given["bytes_per_task"])
    return result
