"""SPEC's measures of elasticity: how well what there is follows what is needed.

Source: Herbst, Krebs and others, *Ready for Rain? A View from SPEC Research on the Future of Cloud Metrics*,
SPEC-RG-2016-01.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from attrs import frozen


@frozen(kw_only=True)
class Elasticity:
    """All are percentages, and best at 0.

    Accuracy is by how much, of what is needed, there was too little (`under`) or too much (`over`); time
    share is for how long. `instability` is the share of the steps in which what there is was not moving as
    what is needed.
    """

    under: float
    over: float
    time_under: float
    time_over: float
    instability: float


def elasticity(demand: Sequence[float], supply: Sequence[float]) -> Elasticity:
    """Compare what is needed, more than 0, with what there is, in steps of the same length.

    Raises ValueError for no steps, or not as many of both.
    """
    if not demand or len(demand) != len(supply):
        raise ValueError(f"{len(demand)} steps of demand and {len(supply)} of supply: give as many of both")
    steps = list(zip(demand, supply, strict=True))
    share = 100 / len(steps)
    moves = list(zip(pairwise(demand), pairwise(supply), strict=True))
    unlike = sum(_sign(after - before) != _sign(then - was) for (before, after), (was, then) in moves)
    return Elasticity(
        under=share * sum(max(needed - there, 0) / needed for needed, there in steps),
        over=share * sum(max(there - needed, 0) / needed for needed, there in steps),
        time_under=share * sum(needed > there for needed, there in steps),
        time_over=share * sum(there > needed for needed, there in steps),
        instability=100 * unlike / len(moves) if moves else 0.0,
    )


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)
