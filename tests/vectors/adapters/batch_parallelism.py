"""The number of tasks of a batch stage, and of its sources."""

from __future__ import annotations

from spark_elastic.core.batch.settings import BatchSettings, highest_parallelism, tasks_for
from spark_elastic.core.batch.sources import source_bound
from tests.vectors.adapters.batch import bounds_of, ranges_of, written_by
from tests.vectors.adapters.fields import Fields, NotRunError


def batch_parallelism_decision(given: Fields) -> Fields:
    if "auto_parallelism_max" in given:
        most = highest_parallelism(given["auto_parallelism_max"], given.get("default_parallelism"))
        return {"global_max": most}
    if "default_source_parallelism" in given:
        return source(given)
    if "global_max" in given:
        return stage(given)
    if "inputs" in given:
        return number(given)
    if "inferred" in given:
        raise NotRunError("a scan says one number of tasks for itself: there is nothing to merge")
    if "vertex_initial" in given:
        raise NotRunError("no number of tasks is decided before the map side has run")
    raise NotRunError("each map task of Spark writes all partitions, however many tasks there are")


def number(given: Fields) -> Fields:
    inputs, volume, bounds = given["inputs"], given["bytes_per_task"], bounds_of(given)
    if all("bytes" in item for item in inputs):
        # A broadcast belongs to no group.
        shuffled = sum(item["bytes"] for item in inputs if not item.get("broadcast"))
        return {"parallelism": tasks_for(shuffled, volume, bounds)}
    return {"parallelism": len(ranges_of([written_by(item) for item in inputs], volume, bounds))}


def stage(given: Fields) -> Fields:
    fixed, maximum = given["parallelism"], unset(given["max_parallelism"])
    if fixed != -1:
        raise NotRunError("no stage is given a number of tasks of its own")
    return {"parallelism": fixed, "max_parallelism": highest_parallelism(maximum, given["global_max"])}


def source(given: Fields) -> Fields:
    if "inputs" in given:
        raise NotRunError("a source of which nothing is known is Spark's own")
    settings = BatchSettings(
        preset="flink",
        max_parallelism=given.get("global_max"),
        default_source_parallelism=given["default_source_parallelism"],
    )
    most = source_bound(settings, slots=0)
    own = unset(given.get("vertex_max"))
    if own is not None and own < most:
        raise NotRunError("a single source has no upper bound of its own")
    return {"source_upper_bound": most}


def unset(value: int | None) -> int | None:
    return None if value == -1 else value
