"""Slots, bounds and the resulting parallelism."""

from __future__ import annotations

from typing import Any

from spark_elastic.core.bounds.requirements import Bounds, Vertex, slot_groups
from spark_elastic.core.bounds.shares import allocate
from spark_elastic.core.rescale.parallelism import is_increase_enough
from tests.vectors.adapters.fields import Fields


def legacy_rescale_gate(given: Fields) -> Fields:
    increase = given.get("min_parallelism_increase", 1)
    return {"rescale": is_increase_enough(given["current"], given["available"], increase)}


def slot_allocation(given: Fields) -> Fields:
    if "required" in given:
        vertex = Vertex(id="v", group="g", bounds=Bounds(upper=sum(given["required"].values())))
        return {"has_desired": len(given["slots"]) >= desired_slots([vertex])}
    if "vertices" not in given:
        vertex = Vertex(id="v", group="g", bounds=Bounds(upper=given["parallelism"]))
        return {"declared_slots": desired_slots([vertex])}
    vertices = [
        Vertex(id=v["id"], group=v["group"], bounds=Bounds(lower=v["lower"], upper=v["upper"]))
        for v in given["vertices"]
    ]
    result: dict[str, Any] = {"desired_slots": desired_slots(vertices)}
    if "slots" in given:
        slots = allocate(slot_groups(vertices), given["slots"])
        shares = None if slots is None else {v.id: v.parallelism(slots[v.group]) for v in vertices}
        result["parallelism"] = shares
    return result


def desired_slots(vertices: list[Vertex]) -> int:
    return sum(group.upper for group in slot_groups(vertices).values())
