"""From a vector's input to what the production code makes of it: one adapter per group, no special cases.

An adapter returns the fields that it knows how to compute; a vector is met if all expected fields are
among them and equal. Where we differ on purpose, `differences.py` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, evolve

from spark_elastic.core.parallelism import is_increase_enough
from spark_elastic.core.query.executing import Executing
from spark_elastic.core.query.transition_manager import TransitionManager
from spark_elastic.core.requirements import Bounds, Vertex, VertexParallelism, default_max_parallelism
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.slots import allocate, desired_slots
from tests.unit.core.builder import STATEFUL, Scene

Fields = Mapping[str, Any]


def reactive_parallelism_store(given: Fields) -> Fields:
    if "vertices" in given:
        known = {name: vertex_parallelism(*values) for name, values in given["vertices"].items()}
        return {
            "vertices": {name: [vertex.parallelism, vertex.max_parallelism] for name, vertex in known.items()}
        }
    vertex = vertex_parallelism(given["parallelism"], given["max_parallelism"])
    parallelism = vertex.reactive_bounds().upper if given.get("adjusted") else vertex.parallelism
    return {"parallelism": parallelism, "max_parallelism": vertex.max_parallelism}


def vertex_parallelism(parallelism: int, maximum: int) -> VertexParallelism:
    return VertexParallelism(parallelism=parallelism, maximum=None if maximum == -1 else maximum)


def default_max(given: Fields) -> Fields:
    return {"max_parallelism": default_max_parallelism(given["parallelism"])}


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
        result["parallelism"] = allocate(vertices, given["slots"])
    return result


@define
class Resources:
    """What a vector says that the context would answer."""

    is_sufficient: bool = False
    is_desired: bool = False

    def sufficient(self) -> bool:
        return self.is_sufficient

    def desired(self) -> bool:
        return self.is_desired


def state_transition_timing(given: Fields) -> Fields:
    return run_steps(given) if "steps" in given else manager_settings(given)


def run_steps(given: Fields) -> Fields:
    """Play the steps; each `expect` among them is checked on the way."""
    config = given["config"]
    manager = TransitionManager(
        created=0,
        cooldown_ms=config["cooldown_ms"],
        stabilization_ms=config["stabilization_ms"],
        max_delay_ms=config["max_trigger_delay_ms"],
    )
    resources = Resources()
    transitions = 0
    for step in given["steps"]:
        at = step["at_ms"]
        transitions += manager.advance(at, resources)
        match step["op"]:
            case "resources":
                resources = Resources(step["sufficient"], step["desired"])
            case "change":
                transitions += manager.change(at, resources)
            case "trigger":
                transitions += manager.trigger(at, resources)
            case "expect":
                assert (manager.phase, transitions) == (step["phase"], step["transitions"]), step
        manager.validate()
    return {"final_phase": manager.phase, "transitions": transitions}


def manager_settings(given: Fields) -> Fields:
    """Let a query run with these settings and look at its manager."""
    named = {
        "executing.cooldown_ms": "cooldown_ms",
        "executing.stabilization_ms": "executing_stabilization_ms",
        "rescale-trigger.max-delay_ms": "max_delay_ms",
    }
    scene = Scene(CoreSettings(**{named[key]: value for key, value in given.items() if key in named}))
    interval_ms = given.get("checkpoint_interval_ms", 0) if given.get("checkpointing") else 0
    scene.start(2)
    scene.running(2, evolve(STATEFUL, trigger_ms=interval_ms))
    state = scene.scheduler._machines["counts"].state
    assert isinstance(state, Executing)
    manager = state.manager
    return {
        "cooldown_ms": manager.cooldown_ms,
        "stabilization_ms": manager.stabilization_ms,
        "max_trigger_delay_ms": manager.max_delay_ms,
        "max_delay_ms": manager.max_delay_ms,
    }


ADAPTERS: Mapping[str, Callable[[Fields], Fields]] = {
    "reactive_parallelism_store": reactive_parallelism_store,
    "default_max_parallelism": default_max,
    "legacy_rescale_gate": legacy_rescale_gate,
    "slot_allocation": slot_allocation,
    "state_transition_timing": state_transition_timing,
}
