"""Adapters that run a vector's input through the production code: one per group, no special cases.

An adapter returns the fields that it knows how to compute; a vector passes if all expected fields are among
them and equal. Deliberate differences are listed in `differences.py`. A vector of a kind that production
never meets raises `NotRunError`: another folder may have some, our own copy has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.vectors.adapters import (
    batch_parallelism,
    batch_ranges,
    requirements,
    rescales,
    restarts,
    scenarios,
    slots,
    states,
    timing,
)
from tests.vectors.adapters.fields import Fields

ADAPTERS: Mapping[str, Callable[[Fields], Fields]] = {
    "legacy_rescale_gate": slots.legacy_rescale_gate,
    "resource_requirements_validation": requirements.resource_requirements_validation,
    "slot_allocation": slots.slot_allocation,
    "exponential_backoff": restarts.exponential_backoff,
    "other_restart_strategies": restarts.other_restart_strategies,
    "rescale_history": rescales.rescale_history,
    "rescale_scenarios": scenarios.rescale_scenarios,
    "state_machine": states.state_machine,
    "state_transition_timing": timing.state_transition_timing,
    "batch_parallelism_decision": batch_parallelism.batch_parallelism_decision,
    "balanced_ranges": batch_ranges.balanced_ranges,
    "bisection_search": batch_ranges.bisection_search,
    "skew_thresholds": batch_ranges.skew_thresholds,
}

PROSE: Mapping[tuple[str, str], Callable[[str, Any], bool]] = {("state_machine", "result"): states.agrees}
"""Comparisons for fields whose values are prose."""
