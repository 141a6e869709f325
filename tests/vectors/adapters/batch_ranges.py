"""Which ranges the tasks of a batch stage read: by bytes, by count, all-to-all, pointwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spark_elastic.core.batch.balance import balance
from spark_elastic.core.batch.decider import Plan, decide
from spark_elastic.core.batch.even import split_broadcast, split_evenly, split_pointwise
from spark_elastic.core.batch.inputs import Input
from spark_elastic.core.batch.search import greatest, least
from spark_elastic.core.batch.skew import Skew
from spark_elastic.core.batch.slices import Slices
from tests.vectors.adapters.batch import PRESET, bounds_of, groups, inclusive, input_from, read_bytes
from tests.vectors.adapters.fields import Fields

SEARCHES: dict[str, Callable[[int, int], int | None]] = {
    "A": lambda low, high: least(lambda x: 29 // x <= 3, low, high),
    "B": lambda low, high: greatest(lambda x: x // 3 <= 3, low, high),
}


def bisection_search(given: Fields) -> Fields:
    found = SEARCHES[given["predicate"]](given["low"], given["high"])
    return {"value": -1 if found is None else found}


def balanced_ranges(given: Fields) -> Fields:
    match given["kind"]:
        case "try_compute_ranges":
            return slice_ranges(given)
        case "even_by_count":
            return even_by_count(given)
        case "decider":
            return decider(given)
        case "all_to_all":
            return all_to_all(given)
        case other:
            raise AssertionError(f"unknown kind {other}")


def slice_ranges(given: Fields) -> Fields:
    bounds = bounds_of(given)
    slices = Slices(weights=given["slice_bytes"])
    found = balance(slices, given["limit"], bounds, decided=bounds.lower, preset=PRESET)
    return {"ranges": None if found is None else [inclusive(span) for span in found]}


def even_by_count(given: Fields) -> Fields:
    consumers, count = given["consumers"], given["subpartitions"]
    try:
        if given.get("broadcast"):
            reads = split_broadcast(1, count, consumers, single=given.get("single", False))
            return {"ranges": [inclusive(block.subpartitions) for (block,) in reads]}
        return {"ranges": [inclusive(span) for span in split_evenly(count, consumers)]}
    except ValueError:
        return {"error": "IllegalArgumentException"}


def decider(given: Fields) -> Fields:
    inputs = [input_from(item) for item in given["inputs"]]
    plan = decide(inputs, given["bytes_per_task"], bounds_of(given), preset=PRESET)
    return {
        "parallelism": plan.parallelism,
        "subpartition_ranges_per_input": [
            [inclusive(block.subpartitions) for blocks in reads for block in blocks] for reads in plan.reads
        ],
    }


def all_to_all(given: Fields) -> Fields:
    left, right = (several(given[side]) for side in ("left", "right"))
    skew = Skew(factor=given["skewed_factor"], threshold=given["skewed_threshold"])
    volume, bounds = given["bytes_per_task"], bounds_of(given)
    plan = decide(left + right, volume, bounds, preset=PRESET, skew=skew, decided=given["parallelism"])
    result: dict[str, Any] = {"parallelism": plan.parallelism}
    for side, inputs, reads in (
        ("left", left, plan.reads[: len(left)]),
        ("right", right, plan.reads[len(left) :]),
    ):
        if not inputs:
            continue
        result[f"bytes_per_task_{side}"] = totals(inputs, reads, plan.parallelism)
        result[f"groups_{side}"] = result[f"groups_first_{side}"] = result[side] = groups(reads[0])
        for item, read in zip(inputs, reads, strict=True):
            result[f"{side}_{item.partitions}_partitions"] = groups(read)
    return result


def several(given: list[Fields]) -> list[Input]:
    return [input_from(item) for item in given for _ in range(item.get("count", 1))]


def totals(inputs: list[Input], reads: Any, tasks: int) -> list[int]:
    return [
        sum(read_bytes(item, read[task]) for item, read in zip(inputs, reads, strict=True))
        for task in range(tasks)
    ]


def pointwise_ranges(given: Fields) -> Fields:
    if given.get("kind") == "even_by_count":
        subpartitions = given["subpartitions"] if given["dynamic"] else None
        reads = split_pointwise(given["producers"], given["consumers"], subpartitions)
        return {"groups": groups(reads)}
    # A vector with a number decided beforehand has pointwise inputs only.
    decided = given.get("parallelism")
    inputs = [input_from(item, pointwise=decided is not None) for item in given["inputs"]]
    plan = decide(inputs, given["bytes_per_task"], bounds_of(given), preset=PRESET, decided=decided)
    per_input = [
        totals([item], [reads], plan.parallelism) for item, reads in zip(inputs, plan.reads, strict=True)
    ]
    return {
        "parallelism": plan.parallelism,
        "groups": groups(plan.reads[given.get("which", 0)]),
        "groups_per_input": [groups(reads) for reads in plan.reads],
        "pointwise_groups": first_groups(inputs, plan, lambda item: item.pointwise),
        "broadcast_groups": first_groups(inputs, plan, lambda item: item.broadcast),
        "bytes_per_task_per_input": per_input,
        "bytes_per_task_total": [sum(sizes) for sizes in zip(*per_input, strict=True)],
    }


def first_groups(inputs: list[Input], plan: Plan, meant: Callable[[Input], bool]) -> Any:
    found = (groups(reads) for item, reads in zip(inputs, plan.reads, strict=True) if meant(item))
    return next(found, None)
