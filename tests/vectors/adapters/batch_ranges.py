"""The ranges that the tasks of a batch stage read, by bytes and by count, and the skewed partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spark_elastic.core.batch.balance import Partitions, greatest, least
from spark_elastic.core.batch.ranges import median
from tests.vectors.adapters.batch import bounds_of, ranges_from, ranges_of, written_by
from tests.vectors.adapters.fields import Fields, NotRunError

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
            found = ranges_of([given["slice_bytes"]], given["limit"], bounds_of(given))
            return {"ranges": [list(span) for span in found]}
        case "even_by_count":
            return even_by_count(given)
        case "decider":
            return decider(given)
        case "all_to_all":
            return all_to_all(given)
        case other:
            raise NotRunError(f"nothing runs the kind {other}")


def even_by_count(given: Fields) -> Fields:
    if given.get("broadcast"):
        raise NotRunError("a broadcast is no shuffle: it is in no group")
    count = given["subpartitions"]
    try:
        starts = Partitions([1] * count).cut_evenly(given["consumers"])
    except ValueError:
        return {"error": "IllegalArgumentException"}
    return {"ranges": [list(span) for span in ranges_from(starts, count)]}


def decider(given: Fields) -> Fields:
    exchanges = [written_by(item) for item in given["inputs"]]
    found = ranges_of(exchanges, given["bytes_per_task"], bounds_of(given))
    alike = [list(span) for span in found]
    return {"parallelism": len(found), "subpartition_ranges_per_input": [alike for _ in exchanges]}


def all_to_all(given: Fields) -> Fields:
    items = {side: given[side] for side in ("left", "right") if given[side]}
    written = {
        side: [written_by(item) for item in several for _ in range(item.get("count", 1))]
        for side, several in items.items()
    }
    exchanges = [exchange for several in written.values() for exchange in several]
    found = ranges_of(exchanges, given["bytes_per_task"], bounds_of(given))
    result: dict[str, Any] = {"parallelism": len(found)}
    for side, several in items.items():
        result[f"bytes_per_task_{side}"] = [
            sum(sum(exchange[start : end + 1]) for exchange in written[side]) for start, end in found
        ]
        # Every reading task reads the output of all map tasks.
        by_maps = {
            maps: [[[[0, maps - 1], list(span)]] for span in found]
            for maps in (len(item["bytes_matrix"]) for item in several)
        }
        first = by_maps[len(several[0]["bytes_matrix"])]
        result[f"groups_{side}"] = result[f"groups_first_{side}"] = result[side] = first
        result.update({f"{side}_{maps}_partitions": groups for maps, groups in by_maps.items()})
    return result


def skew_thresholds(given: Fields) -> Fields:
    if "values" in given:
        return {"median": median(given["values"])}
    if "subpartition_bytes" in given:
        raise NotRunError("Spark alone splits skewed partitions, and says how large the pieces are")
    raise NotRunError("how much larger a skewed partition is cannot be set")
