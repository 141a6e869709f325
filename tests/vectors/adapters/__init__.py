"""From a vector's input to what the production code makes of it: one adapter per group, no special cases.

An adapter returns the fields that it knows how to compute; a vector is met if all expected fields are
among them and equal. Where we differ on purpose, `differences.py` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.vectors.adapters import requirements, rescales, restarts, scenarios, slots, timing
from tests.vectors.adapters.fields import Fields

ADAPTERS: Mapping[str, Callable[[Fields], Fields]] = {
    "reactive_parallelism_store": slots.reactive_parallelism_store,
    "default_max_parallelism": slots.default_max,
    "legacy_rescale_gate": slots.legacy_rescale_gate,
    "resource_requirements_validation": requirements.resource_requirements_validation,
    "slot_allocation": slots.slot_allocation,
    "exponential_backoff": restarts.exponential_backoff,
    "other_restart_strategies": restarts.other_restart_strategies,
    "rescale_history": rescales.rescale_history,
    "rescale_scenarios": scenarios.rescale_scenarios,
    "state_transition_timing": timing.state_transition_timing,
}
