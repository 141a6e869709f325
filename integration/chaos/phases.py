"""The phases in the life of a query, and how to bring a query into one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from integration.chaos.rows import now
from integration.chaos.settings import Mode
from spark_elastic_tools.client import Failure, Json

if TYPE_CHECKING:
    from integration.chaos.world import World

RUNNING, STABILIZING, COOLDOWN, MOVING = "running", "stabilizing", "cooldown", "moving"
PREPARING = "preparing"
BACKOFF, HELD, STARTING = "backoff", "held", "starting"
#: The phases in which a fault should hit; a query can be in others as well.
PHASES = (RUNNING, STABILIZING, COOLDOWN, PREPARING, MOVING, BACKOFF, HELD, STARTING)
#: The phases that can be provoked in a mode of the application. Without bounds, the others occur as workers
#: come and go. A query of plain Spark has no phases: it runs.
PHASES_OF: Mapping[Mode, tuple[str, ...]] = {
    "adaptive": PHASES,
    "reactive": (RUNNING, BACKOFF),
    "old": PHASES,
    "plain": (RUNNING,),
}
#: The phases that start with a failing batch.
ILL = (BACKOFF, HELD, STARTING)
#: The phases before a rescale that the eager query does not have.
WAITING = (STABILIZING, COOLDOWN)
UNKNOWN = "unknown"  # the policy does not answer

_PATIENCE_S = 12.0
# Shorter than any phase. Polling without a pause would take half a core from the application.
_LOOK_S = 0.02
_STATES = {"WaitingForResources": HELD, "CreatingExecutionGraph": STARTING}


def phase_of(query: Json) -> str:
    """Return the phase of a query from the API's view of it."""
    state = query["state"]
    if state == "Restarting":
        return BACKOFF if query["target"] is None else MOVING
    if state != "Executing":
        return _STATES.get(state, str(state))
    if query["preparing"] is not None:
        return PREPARING
    last = query["lastDecision"]
    if last is not None and last["kind"] == "held" and (last["until"] or 0) > now():
        return str(last["reason"])
    return RUNNING


def bring_about(world: World, name: str, phase: str) -> str:
    """Bring a query into a phase if possible, and return the phase that it is in then.

    `World.calm` undoes the changes made for it. A query of plain Spark has no phases: it runs.
    """
    if not world.plugin:
        return RUNNING
    before = None
    try:
        before = _provoke(world, name, phase)
    except Failure as failure:
        world.say(f"{name} cannot be brought into {phase}: {failure}")
    found = wait_for(world, name, phase, before)
    # A third failure of the same kind would be the last one.
    world.make_well()
    return found


def wait_for(world: World, name: str, phase: str, before: int | None = None) -> str:
    """Wait until a query is in a phase, and return its last phase.

    A change to bring it there is complete as soon as it runs with another count than `before`.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        found, count = UNKNOWN, None
        with suppress(Failure, LookupError):
            query = world.query(name)
            found, count = phase_of(query), query["partitions"]
        over = found == RUNNING and None not in (before, count) and count != before
        if found == phase or over or time.monotonic() > deadline:
            return found
        time.sleep(_LOOK_S)


def _provoke(world: World, name: str, phase: str) -> int | None:
    """Provoke a phase of a query; return its count before that, if the count changes."""
    if phase == COOLDOWN:
        wait_for(world, name, MOVING, _change_count(world, name))
        wait_for(world, name, RUNNING)
    if phase in (STABILIZING, COOLDOWN, PREPARING, MOVING):
        return _change_count(world, name)
    if phase == BACKOFF:
        world.make_ill(name)
    elif phase in (HELD, STARTING):
        more = len(world.executors()) + 2
        world.set_bounds(name, more, more)
        world.make_ill(name)
        wait_for(world, name, HELD)
        world.make_well()
        if phase == STARTING:
            return _change_count(world, name)
    return None


def _change_count(world: World, name: str) -> int | None:
    """Declare bounds that change a query's count if there are at least two slots; return the old count."""
    before: int | None = world.query(name)["partitions"]
    world.set_bounds(name, 1, world.most if before == 1 else 1)
    return before
