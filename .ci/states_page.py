"""The documentation of a query's states, generated from their tables."""

from __future__ import annotations

import math
import re
from typing import Any

from spark_elastic.core.query.machine import STATES
from spark_elastic.core.query.record import State
from spark_elastic.core.query.states import Created
from spark_elastic.core.transitions import TRANSITIONS
from spark_elastic.wire import EVENT_TYPES

# Centres of the states in the picture; what every state may lead to is below the way that a query takes.
_PLACES = {
    "Created": (75, 60),
    "WaitingForResources": (235, 60),
    "CreatingExecutionGraph": (430, 60),
    "Executing": (600, 60),
    "StopWithSavepoint": (760, 60),
    "Restarting": (335, 180),
    "Failing": (560, 250),
    "Canceling": (690, 180),
    "Finished": (840, 250),
}
_ENDS = ("Failing", "Canceling", "Finished")
_HALF_HEIGHT = 15
_STYLE = """
text { font: 12px sans-serif; fill: #444; text-anchor: middle; dominant-baseline: central }
rect { fill: #eef2f7; stroke: #567 }
path { fill: none; stroke: #567 }
path.end { stroke: #b0b8c0 }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd } rect { fill: #2a3038 } path.end { stroke: #5a6470 }
}
"""


def states_table() -> str:
    """List when each transition happens."""
    edges = [(start, goal, when) for start, goals in TRANSITIONS.items() for goal, when in goals.items()]
    rows = "\n".join(f"| {start} | {goal} | {when} |" for start, goal, when in edges)
    return f"| from | to | when |\n|---|---|---|\n{rows}"


def states_picture() -> str:
    """Draw the table of transitions as SVG; those that end a query are pale."""
    edges = sorted(
        ((start, goal) for start, goals in TRANSITIONS.items() for goal in goals),
        key=lambda edge: edge[1] not in _ENDS,
    )
    drawn = "\n".join(_edge(start, goal) for start, goal in edges)
    boxes = "\n".join(_box(state, x, y) for state, (x, y) in _PLACES.items())
    arrow = (
        '<marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 290" role="img" aria-label="States">'
        f'<style>{_STYLE}</style><defs>{arrow}<path d="M0 0L8 4L0 8"/></marker></defs>'
        f"\n{drawn}\n{boxes}\n</svg>\n"
    )


def _half_width(state: str) -> float:
    return 3.4 * len(state) + 10


def _box(state: str, x: int, y: int) -> str:
    half = _half_width(state)
    size = f'x="{x - half:.0f}" y="{y - _HALF_HEIGHT}" width="{2 * half:.0f}" height="{2 * _HALF_HEIGHT}"'
    return f'<rect rx="6" {size}/><text x="{x}" y="{y}">{state}</text>'


def _edge(start: str, goal: str) -> str:
    (x0, y0), (x1, y1) = _PLACES[start], _PLACES[goal]
    length = math.hypot(x1 - x0, y1 - y0)
    # Bent to its own right, so that a way back is apart from the way there, and over what is in between.
    bend = 14 + length / 14 if abs(y1 - y0) < 1 else 10
    middle = ((x0 + x1) / 2 + bend * (y1 - y0) / length, (y0 + y1) / 2 - bend * (x1 - x0) / length)
    begin, end = _border(start, middle), _border(goal, middle)
    way = "M{:.0f} {:.0f}Q{:.0f} {:.0f} {:.0f} {:.0f}".format(*begin, *middle, *end)
    kind = ' class="end"' if goal in _ENDS else ""
    return f'<path{kind} d="{way}" marker-end="url(#a)"><title>{start} to {goal}</title></path>'


def _border(state: str, towards: tuple[float, float]) -> tuple[float, float]:
    """Return where the line from a state's centre towards a point leaves its box."""
    x, y = _PLACES[state]
    dx, dy = towards[0] - x, towards[1] - y
    share = min(_half_width(state) / abs(dx) if dx else math.inf, _HALF_HEIGHT / abs(dy) if dy else math.inf)
    return x + dx * share, y + dy * share


def reactions_table() -> str:
    """Return each state's reaction to each event, as the name of its method; a dash if it has none."""
    states = [state for state in STATES.values() if state is not Created]
    met = dict.fromkeys(kind for state in states for kind in state.reactions)
    kinds = sorted(met, key=[*EVENT_TYPES, *met].index)
    rows = (
        (f"`{kind.__name__}`", _gist(kind), *(_reaction(state, kind) for state in states)) for kind in kinds
    )
    head = ("event", "what has happened", *(state.name for state in states))
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows))


def _gist(kind: type[Any]) -> str:
    """Return the first clause of an event's docstring."""
    said = re.split(r"[.,;:](?: |$)", kind.__doc__ or "", maxsplit=1, flags=re.MULTILINE)[0]
    return re.sub(r" \(`\w+`\)", "", " ".join(said.replace("``", "`").split()))


def _reaction(state: type[State], kind: type[Any]) -> str:
    reaction = state.reactions.get(kind)
    return reaction.__name__.replace("_", " ") if callable(reaction) else "–"
