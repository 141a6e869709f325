"""The number of tasks of a batch stage, and of its sources."""

from __future__ import annotations

from typing import Any

from spark_elastic.core.batch.decider import decide, number_of
from spark_elastic.core.batch.even import split_evenly
from spark_elastic.core.batch.inputs import Input, input_of
from spark_elastic.core.batch.number import highest_parallelism, narrow
from spark_elastic.core.batch.sources import merge_inferred, source_bound, source_parallelism
from spark_elastic.core.batch.written import Pattern, subpartitions_written
from spark_elastic.core.requirements import VertexParallelism
from tests.vectors.adapters.batch import PRESET, bounds_of, inclusive, input_from
from tests.vectors.adapters.fields import Fields


def batch_parallelism_decision(given: Fields) -> Fields:
    if "inferred" in given:
        merged = merge_inferred(given["inferred"])
        return {"merged": -1 if merged is None else merged}
    if "auto_parallelism_max" in given:
        most = highest_parallelism(given["auto_parallelism_max"], given.get("default_parallelism"))
        return {"global_max": most}
    if "default_source_parallelism" in given:
        return source(given)
    if "global_max" in given:
        return stage(given)
    if "vertex_initial" in given:
        ranges = split_evenly(len(given["bytes_matrix"][0]), given["vertex_initial"])
        return {"parallelism": len(ranges), "ranges": [inclusive(span) for span in ranges]}
    if "sources" in given:
        written = [sum(subpartitions_of(given, count, given["consumer_max"])) for count in given["sources"]]
        return {"total_input_bytes": sum(written) * given["bytes_per_subpartition"]}
    if "source_parallelism" in given:
        written = subpartitions_of(given, given["source_parallelism"], given["vertex_max"])
        matrix = [[given["bytes_per_subpartition"]] * count for count in written]
        inputs = [input_of(matrix, pointwise=given["pattern"] == "POINTWISE", apart=True)]
        return number(given, inputs)
    return number(given, [input_from(item) for item in given["inputs"]])


def number(given: Fields, inputs: list[Input]) -> Fields:
    bounds = narrow(bounds_of(given), unset(given.get("vertex_min")), unset(given.get("vertex_max")))
    if any("bytes" in item for item in given.get("inputs", ())):
        return {"parallelism": number_of(inputs, given["bytes_per_task"], bounds)}
    return {"parallelism": decide(inputs, given["bytes_per_task"], bounds, preset=PRESET).parallelism}


def stage(given: Fields) -> Fields:
    fixed, maximum = given["parallelism"], unset(given["max_parallelism"])
    if fixed == -1:
        return {"parallelism": fixed, "max_parallelism": highest_parallelism(maximum, given["global_max"])}
    vertex = VertexParallelism(parallelism=fixed, maximum=maximum)
    return {"parallelism": vertex.parallelism, "max_parallelism": vertex.max_parallelism}


def source(given: Fields) -> Fields:
    bounds: dict[str, Any] = {
        "default": given.get("default_source_parallelism"),
        "global_max": given.get("global_max"),
        "stage_max": unset(given.get("vertex_max")),
    }
    return {"parallelism": source_parallelism((), **bounds), "source_upper_bound": source_bound(**bounds)}


def unset(value: int | None) -> int | None:
    return None if value == -1 else value


def subpartitions_of(given: Fields, producers: int, most: int) -> list[int]:
    pattern: Pattern = "pointwise" if given["pattern"] == "POINTWISE" else "all_to_all"
    return subpartitions_written(producers, pattern, tasks=None, most=most)
