"""In which phase of its life a query is, and how to bring it into one."""

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
BACKOFF, HELD, STARTING = "backoff", "held", "starting"
#: Those that a fault is meant to meet; a query can be in others as well.
PHASES = (RUNNING, STABILIZING, COOLDOWN, MOVING, BACKOFF, HELD, STARTING)
#: Those that can be aimed at in a mode of the application. Without bounds the others are met as workers come
#: and go; a query of plain Spark has no phases: it runs.
PHASES_OF: Mapping[Mode, tuple[str, ...]] = {
    "adaptive": PHASES,
    "reactive": (RUNNING, BACKOFF),
    "plain": (RUNNING,),
}
#: Those that begin with a batch that fails.
ILL = (BACKOFF, HELD, STARTING)
#: Those before a rescale that the eager one of the queries does not have.
WAITING = (STABILIZING, COOLDOWN)
UNKNOWN = "unknown"  # the policy does not answer

_PATIENCE_S = 12.0
# Shorter than any phase. Looking all the time would take half a core from what is looked at.
_LOOK_S = 0.02
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


def bring_about(world: World, name: str, phase: str) -> str:
    """Bring a query into a phase, as far as that can be had, and name the one that it is in then.

    What was changed for it is undone by `World.calm`. A query of plain Spark has no phases: it runs.
    """
    if not world.plugin:
        return RUNNING
    before = None
    try:
        before = _provoke(world, name, phase)
    except Failure as failure:
        world.say(f"{name} cannot be brought into {phase}: {failure}")
    found = wait_for(world, name, phase, before)
    # The third failure of the same kind would be the last.
    world.make_well()
    return found


def wait_for(world: World, name: str, phase: str, before: int | None = None) -> str:
    """Wait until a query is in a phase, and name the one that it is in at last.

    A change that was to bring it there is over as soon as it runs with another count than `before`.
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
    """Do what brings a query into a phase; returns its count before that, if that is what changes."""
    if phase == COOLDOWN:
        wait_for(world, name, MOVING, _change_count(world, name))
        wait_for(world, name, RUNNING)
    if phase in (STABILIZING, COOLDOWN, MOVING):
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
    """Declare bounds that change a query's count where there are two slots or more; returns the old count."""
    before: int | None = world.query(name)["partitions"]
    world.set_bounds(name, 1, world.most if before == 1 else 1)
    return before
