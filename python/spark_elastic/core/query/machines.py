"""What the scheduler asks of all queries of an application together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spark_elastic.core.bounds.requirements import Requirements
from spark_elastic.core.cluster.shares import Claim
from spark_elastic.core.failures.strategy import NoRestart
from spark_elastic.core.query.machine import QueryMachine
from spark_elastic.core.rescale.concurrency import MoveQueue

Machines = Mapping[str, QueryMachine]


def name_of(machines: Machines, query: str) -> str | None:
    """Return what a query is called, None if it has no name or is not known."""
    machine = machines.get(query)
    return None if machine is None else machine.record.facts.name


def live(machines: Machines) -> tuple[str, ...]:
    """Return the queries that are not over."""
    return tuple(query for query, machine in machines.items() if not machine.is_finished)


def live_requirements(machines: Machines) -> Iterator[Requirements]:
    """Give what these may have."""
    return (machine.record.requirements for machine in machines.values() if not machine.is_finished)


def restarts(machines: Machines) -> bool:
    """Say whether one of these has settings of its own by which it is started again after a failure."""
    own = (machine.record.settings for machine in machines.values() if not machine.is_finished)
    return any(settings is not None and not isinstance(settings.restart, NoRestart) for settings in own)


def claims(machines: Machines, changed: Mapping[str, Requirements]) -> Iterator[Claim]:
    """Give who wants slots, where some have other requirements from now on."""
    for query, machine in machines.items():
        standing = machine.record.standing
        if standing is not None:
            wanted = changed.get(query, machine.record.requirements)
            yield Claim(query=query, requirements=wanted, standing=standing)


def oldest_finished(machines: Machines, kept: int) -> list[str]:
    """Return the finished ones that are too many: by when they finished, the latest may be looked for."""
    finished = [query for query, machine in machines.items() if machine.is_finished]
    if len(finished) <= kept:
        return []
    finished.sort(key=lambda query: machines[query].record.state.entered)
    return finished[:-kept]


def validate(machines: Machines, moves: MoveQueue) -> None:
    """Check each query, and that who moves its state is known. Raises AssertionError."""
    for query, machine in machines.items():
        assert machine.record.facts.query == query
        machine.record.validate()
    states = {query: machine.record.state for query, machine in machines.items()}
    candidates = {query: state.candidate(machines[query].record) for query, state in states.items()}
    moves.validate(
        {query for query, state in states.items() if state.moving_until is not None},
        {query: candidate for query, candidate in candidates.items() if candidate is not None},
    )
