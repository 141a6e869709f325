"""The transition manager: its phases over time, and its durations from a query's settings."""

from __future__ import annotations

from attrs import define, evolve

from spark_elastic.core.query.executing import Executing
from spark_elastic.core.rescale.failed import FailedBatches
from spark_elastic.core.rescale.transition_manager import TransitionManager
from spark_elastic.core.settings import CoreSettings
from tests.unit.core.builder import STATEFUL, Scene
from tests.vectors.adapters.fields import Fields


@define
class Resources:
    """Resources with a vector's answers in place of the context's."""

    is_sufficient: bool = False
    is_desired: bool = False

    def sufficient(self) -> bool:
        return self.is_sufficient

    def desired(self) -> bool:
        return self.is_desired


def state_transition_timing(given: Fields) -> Fields:
    if given.get("kind") == "checkpoint_counter":
        return count_failures(given)
    return run_steps(given) if "steps" in given else manager_settings(given)


def count_failures(given: Fields) -> Fields:
    """Count micro-batches as the model counts checkpoints, each completed one on its own."""
    batches = FailedBatches()
    triggers: list[int] = []
    for event in given["events"]:
        match event:
            case "change":
                batches.changed(given["max_checkpoint_failures"])
            case "failed":
                batches.failed()
            case "completed":
                batches.committed()
            case _:
                raise KeyError(event)
        batches.validate()
        triggers.append(sum(triggers[-1:]) + (batches.take_due() or event == "completed"))
    return {"triggers_after_each_event": triggers}


def run_steps(given: Fields) -> Fields:
    """Play the steps and check each `expect` among them."""
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
    """Let a query run with these settings and return its manager's durations."""
    named = {
        "executing.cooldown_ms": "cooldown_ms",
        "executing.stabilization_ms": "executing_stabilization_ms",
        "rescale-trigger.max-delay_ms": "max_delay_ms",
        "max_checkpoint_failures": "max_checkpoint_failures",
    }
    scene = Scene(CoreSettings(**{named[key]: value for key, value in given.items() if key in named}))
    interval_ms = given.get("checkpoint_interval_ms", 0) if given.get("checkpointing") else 0
    scene.start(2)
    scene.running(2, evolve(STATEFUL, trigger_ms=interval_ms))
    state = scene.scheduler._machines["counts"].record.state
    assert isinstance(state, Executing)
    manager = state.manager
    return {
        "cooldown_ms": manager.cooldown_ms,
        "stabilization_ms": manager.stabilization_ms,
        "max_trigger_delay_ms": manager.max_delay_ms,
        "max_delay_ms": manager.max_delay_ms,
    }
