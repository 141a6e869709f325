"""What is told of the states of a query, made from their tables."""

from __future__ import annotations

import re
from typing import Any

from spark_elastic.core.query.machine import STATES
from spark_elastic.core.query.record import State
from spark_elastic.core.query.states import Created
from spark_elastic.core.transitions import TRANSITIONS
from spark_elastic.wire import EVENT_TYPES


def states_diagram() -> str:
    """Draw the table of transitions, and say under it when each happens."""
    edges = [(start, goal, when) for start, goals in TRANSITIONS.items() for goal, when in goals.items()]
    drawn = "\n".join(f"    {start} --> {goal}" for start, goal, _ in edges)
    rows = "\n".join(f"| {start} | {goal} | {when} |" for start, goal, when in edges)
    return f"```mermaid\nstateDiagram-v2\n{drawn}\n```\n\n| from | to | when |\n|---|---|---|\n{rows}"


def reactions_table() -> str:
    """Say what each state does about each event, in the words of its method; a dash: it leaves it out."""
    states = [state for state in STATES.values() if state is not Created]
    met = dict.fromkeys(kind for state in states for kind in state.reactions)
    kinds = sorted(met, key=[*EVENT_TYPES, *met].index)
    rows = (
        (f"`{kind.__name__}`", _gist(kind), *(_reaction(state, kind) for state in states)) for kind in kinds
    )
    head = ("event", "what has happened", *(state.name for state in states))
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows))


def _gist(kind: type[Any]) -> str:
    """Return how the description of an event begins."""
    said = re.split(r"[.,;:](?: |$)", kind.__doc__ or "", maxsplit=1, flags=re.MULTILINE)[0]
    return re.sub(r" \(`\w+`\)", "", " ".join(said.replace("``", "`").split()))


def _reaction(state: type[State], kind: type[Any]) -> str:
    reaction = state.reactions.get(kind)
    return reaction.__name__.replace("_", " ") if callable(reaction) else "–"
