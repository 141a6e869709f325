"""In which phase of its life a query is, and how to bring it into one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from integration.chaos.rows import now
from spark_elastic.client.failures import Failure
from spark_elastic.client.source import Json

if TYPE_CHECKING:
    from integration.chaos.world import World

RUNNING, STABILIZING, COOLDOWN, MOVING = "running", "stabilizing", "cooldown", "moving"
BACKOFF, HELD, STARTING = "backoff", "held", "starting"
#: Those that a fault is meant to meet; a query can be in others as well.
PHASES = (RUNNING, STABILIZING, COOLDOWN, MOVING, BACKOFF, HELD, STARTING)
UNKNOWN = "unknown"  # the policy does not answer

_PATIENCE_S = 12.0
_STATES = {"WaitingForResources": HELD, "CreatingExecutionGraph": STARTING}


def phase_of(query: Json) -> str:
    """Name the phase of a query as the API shows it."""
    state = query["state"]
    if state == "Restarting":
        return BACKOFF if query["target"] is None else MOVING
    if state != "Executing":
        return _STATES.get(state, str(state))
    last = query["lastDecision"]
    if last is not None and last["kind"] == "held" and (last["until"] or 0) > now():
        return str(last["reason"])
    return RUNNING


def phase_now(world: World, name: str) -> str:
    """Name the phase of a query at this moment."""
    try:
        return phase_of(world.query(name))
    except (Failure, LookupError):
        return UNKNOWN


def bring_about(world: World, name: str, phase: str) -> str:
    """Bring a query into a phase, as far as that can be had, and name the one that it is in then.

    What was changed for it is undone by `World.calm`.
    """
    try:
        _provoke(world, name, phase)
    except Failure as failure:
        world.say(f"{name} cannot be brought into {phase}: {failure}")
    found = wait_for(world, name, phase)
    # The third failure of the same kind would be the last.
    world.make_well()
    return found


def wait_for(world: World, name: str, phase: str, patience_s: float = _PATIENCE_S) -> str:
    """Wait until a query is in a phase, and name the one that it is in at last."""
    deadline = time.monotonic() + patience_s
    while True:
        found = phase_now(world, name)
        # Nobody sleeps here: a phase can be over in some milliseconds.
        if found == phase or time.monotonic() > deadline:
            return found


def _provoke(world: World, name: str, phase: str) -> None:
    if phase == COOLDOWN:
        world.set_bounds(name, 1, _other_count(world, name))
        wait_for(world, name, MOVING)
        wait_for(world, name, RUNNING)
    if phase in (STABILIZING, COOLDOWN, MOVING):
        world.set_bounds(name, 1, _other_count(world, name))
    elif phase == BACKOFF:
        world.make_ill(name)
    elif phase in (HELD, STARTING):
        more = len(world.executors()) + 2
        world.set_bounds(name, more, more)
        world.make_ill(name)
        wait_for(world, name, HELD)
        world.make_well()
        if phase == STARTING:
            world.set_bounds(name, 1, _other_count(world, name))


def _other_count(world: World, name: str) -> int:
    """Return an upper bound that changes the count of a query where there are two slots or more."""
    return world.most if world.query(name)["partitions"] == 1 else 1
